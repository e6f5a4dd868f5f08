"""Measures the time of a whole `cueline` process that needs neither Ray nor a model.

`list` and `costs` are measured with 10,000 sessions in the log, and with read models that are up to
date.
`show` is measured with one session of 20,000 turns in a log that has no read models yet.
None of these commands may import Ray; the last row counts those that do.
Floors: 0.3 s for `cueline --help`, 0.5 s for `cueline list`, 1 s for `cueline costs`, 2 s for
`cueline show`.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.conversation import AGENT, record
from bench.table import Row
from cueline.events.inbox import StartAsked
from cueline.events.journal import FactWrite
from cueline.events.message import Cost, Usage
from cueline.events.session import ModelReplied, SessionCompleted, SessionStarted
from cueline.events.store import NO_STREAM
from cueline.events.stream import stream_name
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

SESSIONS = 10_000
TOGETHER = 500
TURNS = 20_000
ROUNDS = 5
COMMAND = str(Path(sys.executable).parent / "cueline")
REPLIED = ModelReplied(
    effect="1.m",
    attempt=1,
    stop_reason="end_turn",
    usage=Usage(input=1200, output=80, cache_read=900),
    cost=Cost(usd=Decimal("0.004821"), prices="bench"),
)
IMPORTS_RAY = """
import sys
from cueline.cli import main
try:
    main()
finally:
    print("ray" in sys.modules, file=sys.stderr)
"""


async def begin(log: OpenLog, number: int) -> None:
    """Record a session that was requested, started and completed."""
    asked = StartAsked(agent=AGENT, goal=f"Goal {number}.", asked_at=datetime.now(UTC))
    started = SessionStarted(agent=AGENT, goal=asked.goal, open=False, attached=False, epoch=1)
    facts = {"inbox": [asked], "session": [started, REPLIED, SessionCompleted(result="Done.")]}
    writes = [
        FactWrite(
            stream=stream_name(category, f"{number:05}"),
            steps=[steps],
            expected_version=NO_STREAM,
        )
        for category, steps in facts.items()
    ]
    await log.journal().append(writes, key="bench")


async def fill(path: Path) -> None:
    """Create a log with many sessions."""
    async with open_log(path) as log:
        for first in range(0, SESSIONS, TOGETHER):
            await asyncio.gather(*(begin(log, first + n) for n in range(TOGETHER)))


async def hold(path: Path) -> None:
    """Create a log with one long session."""
    async with open_log(path) as log:
        await record(log, TURNS)


def seconds(*arguments: str) -> float:
    """Return the median time of the whole command, in seconds."""
    taken = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        subprocess.run([COMMAND, *arguments], check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - began)
    return median(taken[1:])  # the first brings the read model up to date


def imports_ray(*arguments: str) -> bool:
    """Return whether the command imports Ray."""
    command = [sys.executable, "-c", IMPORTS_RAY, *arguments]
    told = subprocess.run(command, check=False, capture_output=True, text=True).stderr
    return "True" in told.splitlines()[-1]


def measure() -> list[Row]:
    """Return the rows of this bench; none if cueline has no command line."""
    if find_spec("cueline.cli") is None:
        return []
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder, "log.db")
        asyncio.run(fill(path))
        listing = ("list", "--log", str(path))
        took, summed = seconds(*listing), seconds("costs", "--log", str(path))
        long = Path(folder, "long.db")
        run(hold(long))
        showed = seconds("show", "bench", "--log", str(long))
        ray = sum([imports_ray("--help"), imports_ray(*listing)])
    return [
        Row("`cueline --help`", seconds("--help"), "s", "≤ 0.3"),
        Row("`cueline list`, 10,000 sessions", took, "s", "≤ 0.5"),
        Row("`cueline costs`, 10,000 sessions", summed, "s", "≤ 1"),
        Row("`cueline show`, 20,000 turns", showed, "s", "≤ 2"),
        Row("of these, import Ray", ray, "commands", "≤ 0"),
    ]
