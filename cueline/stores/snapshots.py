"""Stores of session snapshots: in memory, or in a file beside the log.

Snapshots are no evidence: the file is not synced, and a damaged file is deleted.
Deleted data is overwritten, because it was content.
"""

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeVar

from cueline.errors import LogUnavailableError
from cueline.events.snapshot import EVERY, SnapshotRow
from cueline.sqlite_library import is_damage, reason_of, sqlite_library
from cueline.stores.sqlite_file import connect, make_private

_PATIENCE_SECONDS = 0.05
"""How long to wait for another process; a missing snapshot is no error."""
_FORGET_SECONDS = 5.0
_PRAGMAS = (
    "PRAGMA synchronous = OFF",
    # With a WAL, deleted data would stay in it.
    "PRAGMA journal_mode = TRUNCATE",
    "PRAGMA secure_delete = ON",
)
_SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS snapshots (
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    content BLOB NOT NULL,
    chunk BLOB NOT NULL,
    UNIQUE (stream, version)
) STRICT
""",
    """
CREATE TABLE IF NOT EXISTS sources (
    source TEXT NOT NULL,
    stream TEXT NOT NULL,
    PRIMARY KEY (source, stream)
) STRICT, WITHOUT ROWID
""",
)
_NEWEST = """
SELECT content FROM snapshots WHERE stream = ? AND version <= ? ORDER BY version DESC LIMIT 1
"""
_CHUNKS = "SELECT chunk FROM snapshots WHERE stream = ? AND version <= ? ORDER BY version"
_LAST = "SELECT max(version) FROM snapshots WHERE stream = ?"
_DROP = "DELETE FROM snapshots WHERE stream = ?"
_KEEP = "INSERT INTO snapshots (stream, version, content, chunk) VALUES (?, ?, ?, ?)"
_SOURCE = "INSERT OR IGNORE INTO sources (source, stream) VALUES (?, ?)"
_FORGET = """
DELETE FROM snapshots WHERE stream IN (SELECT stream FROM sources WHERE source = ?)
"""
_FORGET_SOURCES = """
DELETE FROM sources WHERE stream IN (SELECT stream FROM sources WHERE source = ?)
"""
_HIGHEST: Final = 2**63 - 1

Answer = TypeVar("Answer")


class MemorySnapshots:
    """Snapshots for one process; see `SnapshotStore`."""

    def __init__(self, every: int = EVERY) -> None:
        self.every = every
        self._rows: dict[str, list[SnapshotRow]] = {}

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        rows = self._up_to(stream, _HIGHEST if until is None else until)
        return rows[-1].content if rows else None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        return [row.chunk for row in self._up_to(stream, until)]

    async def keep(self, stream: str, row: SnapshotRow) -> None:
        if row.after == 0:
            self._rows[stream] = [row]
        elif (rows := self._rows.get(stream)) and rows[-1].version == row.after:
            rows.append(row)

    async def forget(self, streams: Collection[str]) -> None:
        gone = set(streams)
        self._rows = {
            stream: rows
            for stream, rows in self._rows.items()
            if not any(gone.intersection(row.sources) for row in rows)
        }

    def _up_to(self, stream: str, until: int) -> list[SnapshotRow]:
        return [row for row in self._rows.get(stream, ()) if row.version <= until]


class SqliteSnapshots:
    """Snapshots for all processes of one machine; see `SnapshotStore`.

    Each request opens a connection, so no request reads a deleted or replaced file.
    """

    def __init__(self, path: Path, every: int = EVERY) -> None:
        self.every = every
        self._path = path

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        asked = (stream, _HIGHEST if until is None else until)
        row = self._look(lambda db: db.execute(_NEWEST, asked).fetchone())
        return row[0] if row else None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        rows = self._look(lambda db: db.execute(_CHUNKS, (stream, until)).fetchall())
        return [chunk for (chunk,) in rows or ()]

    async def keep(self, stream: str, row: SnapshotRow) -> None:

        def add(db: sqlite3.Connection) -> None:
            if row.after == 0:
                db.execute(_DROP, (stream,))
            elif db.execute(_LAST, (stream,)).fetchone() != (row.after,):
                return
            db.executemany(_SOURCE, [(source, stream) for source in row.sources])
            db.execute(_KEEP, (stream, *row[:3]))

        with suppress(OSError, sqlite_library().Error):
            make_private(self._path)
            self._change("rwc", _PATIENCE_SECONDS, add)

    async def forget(self, streams: Collection[str]) -> None:
        asked = [(stream,) for stream in streams]

        def delete(db: sqlite3.Connection) -> None:
            db.executemany(_FORGET, asked)
            db.executemany(_FORGET_SOURCES, asked)

        if not self._path.exists():
            return
        try:
            self._change("rw", _FORGET_SECONDS, delete)
        except (OSError, sqlite_library().Error) as error:
            raise LogUnavailableError(str(self._path), reason_of(error, self._path)) from error

    def _look(self, look: Callable[[sqlite3.Connection], Answer]) -> Answer | None:
        """Return the result of *look*; None if the file is missing, locked or damaged."""
        with suppress(OSError, sqlite_library().Error):
            if self._path.exists():
                return self._open("rw", _PATIENCE_SECONDS, look)
        return None

    def _change(
        self, mode: str, patience: float, change: Callable[[sqlite3.Connection], None]
    ) -> None:
        def in_one_transaction(db: sqlite3.Connection) -> None:
            db.execute("BEGIN IMMEDIATE")
            for table in _SCHEMA:
                db.execute(table)
            change(db)
            db.execute("COMMIT")

        self._open(mode, patience, in_one_transaction)

    def _open(
        self, mode: str, patience: float, work: Callable[[sqlite3.Connection], Answer]
    ) -> Answer | None:
        """Return the result of *work*; if the file is damaged, delete it and return None."""
        try:
            with closing(connect(self._path, mode, patience)) as db:
                for pragma in _PRAGMAS:
                    db.execute(pragma)
                return work(db)
        except sqlite_library().Error as error:
            if not is_damage(error):
                raise
            for suffix in ("", "-journal"):
                Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            return None
