"""Sessions: one of 400 turns, and 200 at once in one host.

A turn is a model call and a call of a trivial tool that runs in the loop; both answer at once,
so that what is measured is the keeping. Everything is durable.
Bare are the rows of the one session's appends, inserted and committed by SQLite alone.
Floors: 0.45 × two bare commits a turn; 200 sessions make 3 × the turns of one.
"""

import asyncio
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.bare import appends, bare
from bench.conversation import AGENT, Talker
from bench.table import Row, plain
from cueline.actors.approval_gate import ApprovalGate
from cueline.actors.inbox import ask_start
from cueline.actors.presence import presence_of
from cueline.actors.runner import Runner
from cueline.actors.session_host import SessionHost
from cueline.errors import CuelineError
from cueline.events.inbox import StartAsked
from cueline.loop import run
from cueline.runtime import OneRunner, collaborators, open_log
from cueline.tools.executor import ProcessToolExecutor

TURNS = 400
SESSIONS = 200
TURNS_EACH = 25
ROUNDS = 5


async def play(path: Path, sessions: int, turns: int) -> float:
    """Hold *sessions* sessions of *turns* turns in a new log, and return turns a second."""
    async with open_log(path) as log:
        here = presence_of("inline")
        runner = Runner(here.incarnation, ProcessToolExecutor(), asyncio.get_running_loop().time)
        parts = collaborators(log, OneRunner(runner, here, log.board), ApprovalGate(log.journal()))
        parts = replace(parts, models=lambda _: Talker(turns))
        host = SessionHost(here.incarnation, parts, on_trouble=refuse)
        streams = []
        for number in range(sessions):
            name = "bench" if sessions == 1 else f"bench.{number}"
            asked = StartAsked(agent=AGENT, goal="Begin.", asked_at=datetime.now(UTC))
            streams.append(await ask_start(log.journal(), name, asked))
        began = time.perf_counter()
        await host.drive(streams)
        for stream in streams:
            await host.settled(stream)
        seconds = time.perf_counter() - began
        await host.close()
        await runner.close()
        return sessions * turns / seconds


def refuse(stream: str, error: CuelineError) -> None:
    """Have no trouble."""
    raise AssertionError(f"{stream}: {error}")


def one_round(folder: Path) -> tuple[float, float, float]:
    """Return turns a second: of bare commits, of one session, of many."""
    single = run(play(folder / "one.db", 1, TURNS))
    batches = run(appends(folder / "one.db"))
    raw = TURNS / bare(folder / "bare.db", batches)
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
            floor="≥ 0.45 ×",
            ratio=median(one / bare_ for bare_, one, _ in rounds),
            to=f"two bare commits a turn ({raw:,.0f}/s)",
        ),
        Row(
            name=f"{SESSIONS} sessions at once",
            value=many,
            unit="turns/s",
            floor="≥ 3 ×",
            ratio=median(all_ / one for _, one, all_ in rounds),
            to="one session",
        ),
    ]


if __name__ == "__main__":
    print(plain(measure()))
