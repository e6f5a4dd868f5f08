"""cueline: the time until a new host of a long session may decide, with and without snapshots."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from bench.conversation import record
from bench.resume import load
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log

ROUNDS = 3


async def main(turns: int) -> None:
    """Print the quickest time in ms without a snapshot, and with one."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        async with open_log(Path(folder) / "log.db") as log:
            await record(log, turns, rests=True)
            whole = replace(log, snapshots=NO_SNAPSHOTS)
            without = min([(await load(whole, turns)).ms for _ in range(ROUNDS)])
            print(without, min([(await load(log, turns)).ms for _ in range(ROUNDS)]))


run(main(int(sys.argv[1])))
