"""Measures the time from the start of `cueline run` to the first reply in the log.

`cueline run` is measured in three places: in its own process; on a Ray that it starts, less the
time of a bare `ray.init()` in the same run; and on the cluster of a running `cueline up`, where the
command needs no Ray.
Floors: 1 s, 4 s and 2 s.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from bench.table import Row
from cueline.runtime.open_log import open_log

ROUNDS = 3
BARE = """
import time, ray
began = time.perf_counter()
ray.init(address="local", include_dashboard=False, log_to_driver=False, configure_logging=False)
print(time.perf_counter() - began)
"""
AGENT = """
name = "bench"
provider = "scripted"
model = "script.toml"
"""
SCRIPT = """
[[reply]]
text = "Here I am."
"""


def bare() -> float:
    """Return the seconds of a bare `ray.init()`."""
    command = [sys.executable, "-c", BARE]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(told.split()[-1])


def command(*words: str) -> None:
    """Run a command."""
    subprocess.run(
        [sys.executable, "-m", "cueline.cli", *words], check=True, stdout=subprocess.DEVNULL
    )


def cueline(folder: Path, *words: str) -> None:
    """Run a command on the log in *folder*."""
    command(*words, "--log", str(folder / "log.db"))


def first_reply(folder: Path, *flags: str) -> float:
    """Run a session, and return the seconds until its first reply."""
    began = time.time()
    cueline(folder, "run", "Say something.", "--agent", str(folder / "agent.toml"), *flags)
    return asyncio.run(replied_at(folder)) - began


async def replied_at(folder: Path) -> float:
    """Return the time at which the reply of the newest session was recorded."""
    async with open_log(folder / "log.db") as log:
        replies = [e async for e in log.store.read_all() if e.type == "ModelReplied"]
    return replies[-1].recorded_us / 1_000_000


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.toml").write_text(AGENT)
        (folder / "script.toml").write_text(SCRIPT)
        here = [first_reply(folder) for _ in range(ROUNDS)]
        own = [(bare(), first_reply(folder, "--ray")) for _ in range(ROUNDS)]
        cueline(folder, "up", "--detach")
        try:
            attached = [first_reply(folder) for _ in range(ROUNDS)]
        finally:
            cueline(folder, "down")
    more = median(reply - init for init, reply in own)
    return [
        Row("`cueline run` in its own process, to the first reply", median(here), "s", "≤ 1"),
        Row("bare `ray.init()`", median(init for init, _ in own), "s"),
        Row("`cueline run --ray` to the first reply, less that", more, "s", "≤ 4"),
        Row("attached to `cueline up`, to the first reply", median(attached), "s", "≤ 2"),
    ]
