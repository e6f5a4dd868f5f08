"""Measures `audit verify`: read 200,000 sealed events, and check each chain and seal.

The session has 5 events and 1,000 characters of text a turn.
The quickest of several rounds counts, because other work of the machine only adds time.
Floor: 100,000 events a second of CPU time; the check waits for nothing but the disk.
"""

import tempfile
import time
from pathlib import Path

from bench.conversation import record
from bench.table import Row
from cueline.client.verify import verify_log
from cueline.providers.seal_key import seal_key
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log
from cueline.runtime.seal import seal_log

TURNS = 40_000
ROUNDS = 5


async def rounds(folder: Path) -> list[tuple[float, float]]:
    """Return the rates by the CPU's time and by the clock."""
    rates = []
    key = seal_key({"XDG_CONFIG_HOME": str(folder)})
    async with open_log(folder / "log.db") as log:
        await record(log, TURNS)
        await seal_log(log, key, folder / "seals")
        for _ in range(ROUNDS):
            cpu, began = time.process_time(), time.perf_counter()
            found = await verify_log(log, folder / "seals")
            taken = time.process_time() - cpu, time.perf_counter() - began
            assert (found.bad, found.seals) == ((), 1), "the log is intact"
            rates.append((found.events / taken[0], found.events / taken[1]))
    return rates


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        rates = run(rounds(Path(name)))
    cpu, clock = (max(each) for each in zip(*rates, strict=True))
    return [
        Row("events verified, by CPU time", cpu, "events/s", "≥ 100,000"),
        Row("events verified, by the clock", clock, "events/s"),
    ]
