"""Resume: become the owner of a session, read it, and fold its state and its prompt.

That is all a host does before it decides: it acquires (one commit), verifies the chain, decodes,
and folds twice.
Of several rounds the quickest counts: what else the machine does only adds.
The ratio is of 30,000 events to 1,000: a resume is a read and a fold, so it stays near 30.
Floors: 18 ms for 1,000 events; 450 ms for 30,000, and 40 × the 1,000.
"""

import tempfile
import time
from pathlib import Path
from uuid import uuid4

from bench.conversation import loaded, record
from bench.table import Row
from cueline.loop import run
from cueline.wiring import Log, open_log

SHORT, LONG = 200, 6_000
"""Turns, of five events each."""
ROUNDS = 7
SHORT_LOADS = 5
"""In a round."""


async def load(log: Log) -> float:
    """Return the seconds until the session is ready to decide."""
    began = time.perf_counter()
    entity = await loaded(log, uuid4().hex)
    seconds = time.perf_counter() - began
    assert len(entity.prompt.messages) >= 2 * SHORT, "the prompt is whole"
    return seconds


async def rounds(folder: Path) -> tuple[list[float], list[float]]:
    """Return the seconds of short and of long sessions, measured in turn."""
    async with open_log(folder / "short.db") as short, open_log(folder / "long.db") as long:
        await record(short, SHORT)
        await record(long, LONG)
        briefly: list[float] = []
        lengthily: list[float] = []
        for _ in range(ROUNDS):
            briefly += [await load(short) for _ in range(SHORT_LOADS)]
            lengthily.append(await load(long))
    return briefly, lengthily


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        briefly, lengthily = run(rounds(Path(folder)))
    short, long = 1_000 * min(briefly), 1_000 * min(lengthily)
    # 004-077: in less than a second.
    return [
        Row("resume with 1,000 events", short, "ms", "≤ 18"),
        Row("resume with 30,000 events", long, "ms", "≤ 450"),
        Row("resume, how it grows", long, "ms", "≤ 40 ×", long / short, "1,000 events"),
    ]
