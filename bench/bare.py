"""What SQLite and the disk take for the rows of a session, with nothing of ours around them."""

import time
from itertools import groupby
from pathlib import Path

from bench.conversation import STREAM
from cueline.events.store import RecordedEvent
from cueline.runtime import open_log
from cueline.stores.sqlite_library import sqlite_library

_COLUMNS = RecordedEvent._fields
_TABLE = f"CREATE TABLE events ({', '.join(_COLUMNS)}, UNIQUE (stream, version))"
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(_COLUMNS))})"


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
