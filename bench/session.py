"""Measures the speed of one session of 400 turns, and of 200 sessions at once in one host.

A turn is a model call and a call of a trivial tool that runs in the event loop. Both answer at
once, so the bench measures cueline's own work. Everything is durable.
The bare variant is SQLite alone, which inserts and commits the rows of the one session's appends.
A session of 250 turns comes before each measurement, so that all variants write to a warm WAL: a
commit that makes the WAL longer takes twice as long.
There are no floors, because both ratios fall as the disk gets faster: the time of a turn beside its
commits does not depend on the disk. On a disk where two bare commits took 0.73 ms, the ratios were
above 0.45 and 3.
A processor that sleeps during a commit runs the code after the commit slower: on a file system in
memory, the time of a turn beside its commits is about two thirds of the time on a disk.
A Python that was built without optimizations, as pyenv builds it, reaches four fifths of the turns
a second of 200 sessions, and nine tenths of those of one session.
"""

import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.bare import bare, played
from bench.conversation import AGENT, Talker, hosted
from bench.table import Row, plain
from cueline.actors.inbox import ask_start
from cueline.events.inbox import StartAsked
from cueline.events.log_url import LogName
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

TURNS = 400
SESSIONS = 200
TURNS_EACH = 25
WARM_TURNS = 250
ROUNDS = 5


async def play(path: LogName, sessions: int, turns: int, warm: int = WARM_TURNS) -> float:
    """Run *sessions* sessions of *turns* turns in a warm log, and return turns a second."""
    names = ["bench"] if sessions == 1 else [f"bench.{number}" for number in range(sessions)]
    async with open_log(path) as log:
        await _hold(log, ["warm"], warm)
        return sessions * turns / await _hold(log, names, turns)


async def _hold(log: OpenLog, names: Sequence[str], turns: int) -> float:
    """Run a session of *turns* turns for each of *names*, and return the seconds."""
    async with hosted(log, Talker(turns)) as (host, _):
        streams = []
        for name in names:
            asked = StartAsked(agent=AGENT, goal="Begin.", asked_at=datetime.now(UTC))
            streams.append(await ask_start(log.journal(), name, asked))
        began = time.perf_counter()
        await host.activate_all(streams)
        for stream in streams:
            await host.settled(stream)
        return time.perf_counter() - began


def one_round(folder: Path) -> tuple[float, float, float]:
    """Return turns a second: of bare commits, of one session, of many."""
    single = run(play(folder / "one.db", 1, TURNS))
    raw = TURNS / bare(folder / "bare.db", *run(played(folder / "one.db")))
    many = run(play(folder / "many.db", SESSIONS, TURNS_EACH))
    return raw, single, many


def measure() -> list[Row]:
    """Return the rows of this bench."""
    rounds = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            rounds.append(one_round(Path(folder)))
    raw, single, many = (median(taken) for taken in zip(*rounds, strict=True))
    return [
        Row(
            name=f"one session, {TURNS} turns",
            value=single,
            unit="turns/s",
            ratio=median(one / bare_ for bare_, one, _ in rounds),
            to=f"two bare commits a turn ({raw:,.0f}/s)",
        ),
        Row(
            name="a turn beside its two commits",
            value=1000 * median(1 / one - 1 / bare_ for bare_, one, _ in rounds),
            unit="ms",
        ),
        Row(
            name=f"{SESSIONS} sessions at once",
            value=many,
            unit="turns/s",
            ratio=median(all_ / one for _, one, all_ in rounds),
            to="one session",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
