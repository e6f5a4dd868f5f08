"""Resume: become the owner of a session, read it, and fold its state and its prompt.

That is all a host does before it decides: it acquires (one commit), verifies the chain, decodes,
and folds twice.
From a snapshot it reads the state and the prompt, and folds the 200 events that came since.
A message has to know the state and what was not read of the inbox, without the prompt.
Of several rounds the quickest counts: what else the machine does only adds.
The ratios are to the same resume without snapshots, and of 30,000 events to 1,000.
Floors: 18 ms for 1,000 events; 450 ms for 30,000 without snapshots, and 40 × the 1,000; with them
50 ms for 30,000 and 70 ms for 100,000, each plus 2 ms a MB of prompt; 5 ms for a message.
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
from cueline.client.current import current_session
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

SHORT, LONG, LONGEST = 200, 6_040, 20_040
"""Turns, of five events each."""
ROUNDS = 7
SHORT_LOADS = 5
"""In a round."""


class Loaded(NamedTuple):
    """One resume."""

    ms: float
    megabytes: float
    """Of the prompt."""


class Loads(NamedTuple):
    """The quickest of each."""

    short: Loaded
    long: Loaded
    long_from_snapshot: Loaded
    longest_from_snapshot: Loaded
    state: float


async def load(log: OpenLog, turns: int) -> Loaded:
    """Have the session ready to decide."""
    began = time.perf_counter()
    entity = await loaded(log, uuid4().hex)
    seconds = time.perf_counter() - began
    messages = entity.prompt.messages
    assert len(messages) >= 2 * turns, "the prompt is whole"
    return Loaded(1_000 * seconds, sum(map(len, messages)) / 1_000_000)


async def know(log: OpenLog) -> float:
    """Return how long it takes to know what a message has to know, in ms."""
    began = time.perf_counter()
    now = await current_session(SessionCache(log.journal()), STREAM)
    seconds = time.perf_counter() - began
    assert now.state.turn.number > LONG, "the state is whole"
    return 1_000 * seconds


async def rounds(folder: Path) -> Loads:
    """Load short and long sessions in turn."""
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
