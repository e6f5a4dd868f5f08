"""Measures a resume: acquire a session, read it, and fold its state and its prompt.

A host does nothing else before its first decision: it acquires the session (one commit), verifies
the chain, decodes the events, and folds them twice.
With a snapshot, the host reads the state and the prompt from it, and folds the 200 later events.
To check a message, cueline needs the state and the unread part of the inbox, but not the prompt.
The quickest of several rounds counts, because other work of the machine only adds time.
The ratios are to the same resume without snapshots, and of 30,000 events to 1,000 events.
Floors without snapshots: 18 ms for 1,000 events; for 30,000 events 450 ms, and 40 × the time of
1,000. Floors with snapshots: 50 ms for 30,000 events and 70 ms for 100,000, each plus 2 ms for each
MB of prompt. Floor for a message: 5 ms.
"""

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from bench.conversation import STREAM, loaded, record
from bench.table import Row
from cueline.actors.fold import SessionCache
from cueline.client.current_session import current_session
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

SHORT, LONG, LONGEST = 200, 6_040, 20_040
"""The number of turns; each has five events."""
ROUNDS = 7
SHORT_LOADS = 5
"""The number of loads in a round."""


class Loaded(NamedTuple):
    """The measurements of one resume."""

    ms: float
    megabytes: float
    """Of the prompt."""


class Loads(NamedTuple):
    """The quickest load of each kind."""

    short: Loaded
    long: Loaded
    long_from_snapshot: Loaded
    longest_from_snapshot: Loaded
    state: float


async def load(log: OpenLog, turns: int) -> Loaded:
    """Load the session until it is ready to decide, and return the measurements."""
    began = time.perf_counter()
    entity = await loaded(log, uuid4().hex)
    seconds = time.perf_counter() - began
    messages = entity.prompt.messages
    assert len(messages) >= 2 * turns, "the prompt is whole"
    return Loaded(1_000 * seconds, sum(map(len, messages)) / 1_000_000)


async def know(log: OpenLog) -> float:
    """Return the time in ms to read the state and the unread messages, for a new message."""
    began = time.perf_counter()
    now = await current_session(SessionCache(log.journal()), STREAM)
    seconds = time.perf_counter() - began
    assert now.state.turn.number > LONG, "the state is whole"
    return 1_000 * seconds


async def rounds(folder: Path) -> Loads:
    """Load short and long sessions in turn, and return the quickest loads."""
    async with (
        open_log(folder / "short.db") as short,
        open_log(folder / "long.db") as long,
        open_log(folder / "longest.db") as longest,
    ):
        for log, turns in ((short, SHORT), (long, LONG), (longest, LONGEST)):
            await record(log, turns, rests=log is not short)
        slow = replace(long, snapshots=NO_SNAPSHOTS)
        found: list[tuple[Loaded, Loaded, Loaded, Loaded, float]] = []
        for _ in range(ROUNDS):
            briefly = min([await load(short, SHORT) for _ in range(SHORT_LOADS)])
            lengthily = [await load(slow, LONG), await load(long, LONG)]
            found.append((briefly, *lengthily, await load(longest, LONGEST), await know(long)))
    return Loads(*(min(each) for each in zip(*found, strict=True)))


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        short, long, quick, longest, state = run(rounds(Path(folder)))
    # 004-077: in less than a second.
    return [
        Row("resume with 1,000 events", short.ms, "ms", "≤ 18"),
        Row("resume with 30,000 events, no snapshot", long.ms, "ms", "≤ 450"),
        Row("resume, how it grows", long.ms, "ms", "≤ 40 ×", long.ms / short.ms, "1,000 events"),
        Row(
            f"resume with 30,000 events, {quick.megabytes:.1f} MB of prompt",
            quick.ms,
            "ms",
            f"≤ {50 + 2 * quick.megabytes:.0f}",
            quick.ms / long.ms,
            "no snapshot",
        ),
        Row(
            f"resume with 100,000 events, {longest.megabytes:.1f} MB of prompt",
            longest.ms,
            "ms",
            f"≤ {70 + 2 * longest.megabytes:.0f}",
        ),
        Row("what a message has to know, 30,000 events", state, "ms", "≤ 5"),
    ]
