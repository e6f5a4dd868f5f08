"""Measures a replay: read 30,000 events, verify their chain, decode and fold them.

The session has 5 events and 1,000 characters of text a turn.
The ratio is to `repository.get` of the `eventsourcing` package over the same payloads in SQLite.
That method reads, decodes and folds, but verifies nothing.
The quickest of several rounds counts for both programs, because other work of the machine only adds
time.
Floors: 70,000 events a second, and 1.7 × the peer's rate.
"""

import json
import tempfile
import time
from pathlib import Path

from bench.conversation import STREAM, record
from bench.peer import peer
from bench.table import Row
from cueline.deciders.session import evolve, session_of
from cueline.runtime.loop import run
from cueline.runtime.open_log import OpenLog, open_log

TURNS = 6_000
ROUNDS = 7


async def replay(log: OpenLog) -> float:
    """Replay the log, and return events a second."""
    state = session_of(STREAM)
    began = time.perf_counter()
    async for recorded, fact in log.journal().read(STREAM):
        version, state = recorded.version, evolve(state, fact)
    seconds = time.perf_counter() - began
    assert state.turn.number == TURNS + 1, "the whole session was replayed"
    return version / seconds


async def write_payloads(log: OpenLog, path: Path) -> None:
    """Write type and payload of each event but the first, which the peer makes itself."""
    with path.open("w") as file:
        async for recorded in log.store.read(STREAM, after=1):
            print(json.dumps([recorded.type, json.loads(recorded.payload or b"")]), file=file)


async def rounds(folder: Path) -> tuple[list[float], list[float]]:
    """Return the rates of cueline and of the peer, measured in turn."""
    ours, theirs = [], []
    payloads, database = folder / "payloads", str(folder / "peer.db")
    async with open_log(folder / "log.db") as log:
        await record(log, TURNS)
        await write_payloads(log, payloads)
        with peer("bench.peer_eventsourcing") as eventsourcing:
            eventsourcing.run(path=database, payloads=str(payloads))
            for _ in range(ROUNDS):
                ours.append(await replay(log))
                got = eventsourcing.run(path=database)
                theirs.append(got["events"] / got["seconds"])
    return ours, theirs


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        ours, theirs = run(rounds(Path(folder)))
    ratio = max(ours) / max(theirs)
    return [
        Row("replay of 30,000 events", max(ours), "events/s", "≥ 70,000"),
        Row("replay beside a peer", max(ours), "events/s", "≥ 1.7 ×", ratio, "eventsourcing"),
    ]
