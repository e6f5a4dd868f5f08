"""Inserts and commits the rows of a session by SQLite alone, and measures the time."""

import sqlite3
import time
from itertools import groupby
from pathlib import Path

from cueline.events.store import RecordedEvent
from cueline.events.stream import stream_name
from cueline.runtime.open_log import OpenLog, open_log
from cueline.sqlite_library import sqlite_library

_COLUMNS = RecordedEvent._fields
_TABLE = f"CREATE TABLE events ({', '.join(_COLUMNS)}, UNIQUE (stream, version))"
_INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(_COLUMNS))})"

Appends = list[list[RecordedEvent]]
"""The rows of a session, by append."""


async def played(path: Path) -> tuple[Appends, Appends]:
    """Return the rows of the warm-up session and of the measured session, by append."""
    async with open_log(path) as log:
        return await _appends(log, "warm"), await _appends(log, "bench")


async def _appends(log: OpenLog, name: str) -> Appends:
    events = [event async for event in log.store.read(stream_name("session", name))]
    return [list(rows) for _, rows in groupby(events, lambda event: event.version - event.seq)]


def bare(path: Path, warm: Appends, appends: Appends) -> float:
    """Insert and commit the rows of *warm* and *appends*; return the seconds of *appends*."""
    database = sqlite_library().connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute(_TABLE)
    _write(database, warm)
    began = time.perf_counter()
    _write(database, appends)
    seconds = time.perf_counter() - began
    database.close()
    return seconds


def _write(database: sqlite3.Connection, appends: Appends) -> None:
    for rows in appends:
        database.execute("BEGIN IMMEDIATE")
        database.executemany(_INSERT, rows)
        database.execute("COMMIT")
