"""Presence boards: in memory, or in a file beside the log.

Presence is no evidence: the file is not synced, and a damaged file is discarded.
Living processes send their heartbeats again.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import astuple, fields, replace
from pathlib import Path
from time import monotonic

from cueline.clock import Clock
from cueline.errors import LogUnavailableError
from cueline.events.store import Presence, to_us
from cueline.files import make_folder
from cueline.sqlite_library import is_broken, is_busy, reason_of, sqlite_library
from cueline.stores.sqlite_file import (
    RETRY_SECONDS,
    connect,
    identity,
    make_private,
    retry_while_busy,
)
from cueline.stores.waiting import pause

PATIENCE_SECONDS = 2.0
"""The longest wait for the file: the interval after which the next heartbeat is sent."""

_WAL_PAGES = 8
_COLUMNS = ", ".join(field.name for field in fields(Presence))
_MARKS = ", ".join("?" for _ in fields(Presence))
_SCHEMA = """
CREATE TABLE IF NOT EXISTS process (
    incarnation TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    machine TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started INTEGER NOT NULL,
    pid_namespace TEXT NOT NULL,
    beat_us INTEGER NOT NULL,
    address TEXT NOT NULL,
    token TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""
_BEAT = f"INSERT OR REPLACE INTO process ({_COLUMNS}) VALUES ({_MARKS})"  # noqa: S608 - the columns are ours
_LEAVE = "DELETE FROM process WHERE incarnation = ?"
_ALL = f"SELECT {_COLUMNS} FROM process ORDER BY incarnation"  # noqa: S608 - the columns are ours


class MemoryPresence:
    """A board for one process; see `PresenceBoard`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._present: dict[str, Presence] = {}

    async def beat(self, presence: Presence) -> None:
        beat = replace(presence, beat_us=to_us(self._clock.now()))
        self._present[presence.incarnation] = beat

    async def leave(self, incarnation: str) -> None:
        self._present.pop(incarnation, None)

    async def all(self) -> Sequence[Presence]:
        return [self._present[incarnation] for incarnation in sorted(self._present)]

    async def close(self) -> None:
        """See `PresenceBoard.close`; the presences stay for the next user of the board."""


class SqlitePresence:
    """A board for all processes of one machine; see `PresenceBoard`."""

    def __init__(
        self, path: Path, clock: Clock, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Open the board at *path*; create it if it is missing.

        Raises:
            LogUnavailableError: it cannot be written; the message says why.
        """
        self._path = path
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._identity: tuple[int, int] | None = None
        self._db = self._open()

    async def beat(self, presence: Presence) -> None:
        beat = replace(presence, beat_us=to_us(self._clock.now()))
        self._find_again()
        await self._write(_BEAT, astuple(beat))

    async def leave(self, incarnation: str) -> None:
        await self._write(_LEAVE, (incarnation,))

    async def all(self) -> Sequence[Presence]:
        names = [field.name for field in fields(Presence)]
        self._find_again()
        try:
            rows = self._db.execute(_ALL).fetchall()
        except sqlite_library().Error as error:
            self._mend(error)
            rows = []
        return [Presence(**dict(zip(names, row, strict=True))) for row in rows]

    async def close(self) -> None:
        """Close the file."""
        self._db.close()

    async def _write(self, sql: str, values: Sequence[object]) -> None:
        deadline = monotonic() + self._patience_seconds
        while True:
            try:
                self._db.execute(sql, values)
            except sqlite_library().Error as error:
                if not is_busy(error):
                    self._mend(error)
                if monotonic() > deadline:
                    raise self._unavailable(error) from error
                await pause(RETRY_SECONDS)
            else:
                return

    def _find_again(self) -> None:
        """Open the file at the path again, if the open file was removed or replaced.

        If the folder is gone, the log is gone, too, and the file is not created again.
        """
        try:
            found = identity(self._path)
        except OSError:
            return  # a read that fails now is no evidence about the file
        if (found is None or found != self._identity) and self._path.parent.is_dir():
            self._let_go()
            self._db = self._open()

    def _mend(self, error: Exception) -> None:
        """Start with an empty board if the file is damaged."""
        if not is_broken(error):
            raise self._unavailable(error) from error
        self._let_go()
        try:
            self._set_aside()
        except OSError as trouble:
            raise self._unavailable(trouble) from trouble
        self._db = self._open()

    def _let_go(self) -> None:
        """Close the file; if a new file cannot be opened now, the next call tries again."""
        self._db.close()
        self._identity = None

    def _open(self) -> sqlite3.Connection:
        try:
            make_folder(self._path.parent)
            try:
                return self._connect()
            except sqlite_library().DatabaseError as error:
                if not is_broken(error):
                    raise
            self._set_aside()
            return self._connect()
        except (OSError, sqlite_library().Error) as error:
            raise self._unavailable(error) from error

    def _connect(self) -> sqlite3.Connection:
        make_private(self._path)
        db = connect(self._path, "rwc", PATIENCE_SECONDS)
        try:
            retry_while_busy(db, "PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")
            # The WAL restarts so often that heartbeats need no more space, which a full disk lacks.
            db.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
            retry_while_busy(db, _SCHEMA)
            db.execute("PRAGMA busy_timeout = 0")
        except sqlite_library().Error:
            db.close()
            raise
        self._identity = identity(self._path)
        return db

    def _set_aside(self) -> None:
        # Not deleted: the user may have named the wrong file.
        for suffix in ("", "-wal", "-shm"):
            part = self._path.with_name(self._path.name + suffix)
            with suppress(FileNotFoundError):
                part.replace(part.with_name(part.name + ".damaged"))

    def _unavailable(self, error: Exception) -> LogUnavailableError:
        return LogUnavailableError(str(self._path), reason_of(error, self._path))
