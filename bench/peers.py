"""Peers: one session of 400 turns, a model call and a trivial tool each, everything durable.

The model and the tool answer at once, so that what is measured is the keeping.
LangGraph keeps it with `SqliteSaver` and `durability="sync"`, DBOS in SQLite, each as it comes.
Bare is what the disk and SQLite take: the rows of our two appends a turn, inserted and committed
in a table of the same columns with `UNIQUE(stream, version)` and `FULL`; both begin a new file.
Floors: 4 × each peer, where a bare fsync takes 0.5 ms at most; 0.45 × bare.
"""

import asyncio
import os
import tempfile
import time
from itertools import groupby
from pathlib import Path
from statistics import median

from bench.conversation import STREAM, play
from bench.peer import peer
from bench.table import Row
from cueline.events.store import RecordedEvent
from cueline.runtime import open_log
from cueline.stores.sqlite_library import sqlite_library

TURNS = 400
WARM_UP = 20
ROUNDS = 3
QUICK_DISK_MS = 0.5
_COLUMNS = RecordedEvent._fields
_TABLE = f"CREATE TABLE events ({', '.join(_COLUMNS)}, UNIQUE (stream, version))"
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(_COLUMNS))})"


def fsync_ms(folder: Path) -> float:
    """Return what a bare fsync of a page takes."""
    taken = []
    with (folder / "page").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(4096))
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return 1_000 * median(taken)


async def appends(path: Path) -> list[list[RecordedEvent]]:
    """Return the rows of a played session, as they were appended."""
    async with open_log(path) as log:
        events = [event async for event in log.store.read(STREAM)]
    return [list(rows) for _, rows in groupby(events, lambda event: event.version - event.seq)]


def bare(path: Path, batches: list[list[RecordedEvent]]) -> float:
    """Insert and commit every append, and return the seconds."""
    database = sqlite_library().connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(_TABLE)
    began = time.perf_counter()
    for rows in batches:
        database.execute("BEGIN IMMEDIATE")
        database.executemany(_INSERT, rows)
        database.execute("COMMIT")
    seconds = time.perf_counter() - began
    database.close()
    return seconds


def rounds(folder: Path) -> dict[str, list[float]]:
    """Return everybody's seconds, measured in turn; a short first round warms up."""
    taken: dict[str, list[float]] = {name: [] for name in ("cueline", "bare", "LangGraph", "DBOS")}
    with peer("bench.peer_langgraph") as langgraph, peer("bench.peer_dbos") as dbos:
        for number, turns in enumerate([WARM_UP, *[TURNS] * ROUNDS]):
            log = folder / f"log{number}.db"
            taken["cueline"].append(asyncio.run(play(log, turns)))
            batches = asyncio.run(appends(log))
            taken["bare"].append(bare(folder / f"bare{number}.db", batches))
            database = str(folder / f"langgraph{number}.db")
            taken["LangGraph"].append(langgraph.run(path=database, turns=turns)["seconds"])
            taken["DBOS"].append(dbos.run(turns=turns)["seconds"])
    return {name: seconds[1:] for name, seconds in taken.items()}


def measure() -> list[Row]:
    """Return the rows of this bench."""
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        fsync = fsync_ms(folder)
        taken = rounds(folder)
    floors = {"bare": "≥ 0.45 ×"}
    if fsync <= QUICK_DISK_MS:
        floors |= {"LangGraph": "≥ 4 ×", "DBOS": "≥ 4 ×"}
    rate = TURNS / median(taken["cueline"])
    ours = taken["cueline"]
    rows = [Row("a bare fsync", fsync, "ms")]
    for name in ("bare", "LangGraph", "DBOS"):
        ratio = median(theirs / one for one, theirs in zip(ours, taken[name], strict=True))
        rows.append(
            Row(f"one session beside {name}", rate, "turns/s", floors.get(name, ""), ratio, name)
        )
    return rows
