"""The log's file: whether it can be used, and connections to it."""

import os
import sqlite3
import uuid
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic

from cueline.errors import (
    LogFormatError,
    LogIndexLostError,
    LogLostError,
    LogUnavailableError,
    StoreError,
)
from cueline.stores.file_identity import FileIdentity
from cueline.stores.file_system import refuse_place
from cueline.stores.lock_owner import lock_owner
from cueline.stores.sqlite_error import NOT_OURS, is_busy, reason_of
from cueline.stores.sqlite_library import sqlite_library
from cueline.stores.sqlite_schema import FORMAT, SCHEMA

PATIENCE_SECONDS = 10.0
"""How long anybody waits for another process's transaction."""
RETRY_SECONDS = 0.0005
"""SQLite's own waits grow to 100 ms, and starve whoever is not the busiest."""

LOOK_SECONDS = 0.02
"""How often to see at most whether the index is there; a process takes longer to open a log."""

_READER_PATIENCE_SECONDS = 1.0
"""Readers of a WAL wait only while another process recovers it."""
_WRITER = (
    # The mode is kept in the file; asking for it again costs nothing.
    "PRAGMA journal_mode = WAL",
    # NORMAL loses acknowledged commits in a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    # Without it INSERT OR REPLACE goes past the triggers against deleting.
    "PRAGMA recursive_triggers = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -32768",
    # In pages. As long as the WAL grows, a commit waits also for its file's new length.
    "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA busy_timeout = 0",
)


def connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """Return a connection without transactions of its own making."""
    db: sqlite3.Connection = sqlite_library().connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        # A commit may run in the writer's thread; never two at a time.
        check_same_thread=False,
    )
    return db


def real(path: Path) -> Path:
    """Return the file that *path* leads to; `Path.resolve` fails where links go in a circle."""
    return Path(os.path.realpath(path))


def make_private(path: Path) -> None:
    """Make an empty file that its owner alone can read and write, if none is there.

    SQLite gives what it puts beside a file the same permissions.
    """
    # Never opened when it is there: to close it would drop every lock that
    # this process has on it.
    with suppress(FileExistsError):
        real(path).touch(0o600, exist_ok=False)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells the file at *path* from one that takes its place; None where none is.

    Raises:
        OSError: nobody can tell.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def patiently(db: sqlite3.Connection, statement: str) -> None:
    """Run what SQLite refuses at once, instead of waiting, while others are busy."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            db.execute(statement)
        except sqlite_library().OperationalError as error:
            if not is_busy(error) or monotonic() > deadline:
                raise
            Event().wait(RETRY_SECONDS)
        else:
            return


class LogFile:
    """The place of a log, and how to connect to it.

    Nothing here opens the file but SQLite: closing a file drops every lock that
    the process has on it, also those of another connection.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: list[FileIdentity] = []
        self._index: FileIdentity | None = None
        self._looked_at = 0.0
        self._immutable = False
        """Whether it was opened without a WAL."""
        self._closed = False

    def open(self, *, must_exist: bool, read_only: bool, now_us: int) -> str:
        """Make the log if it is not there, and return its id.

        Raises:
            LogUnavailableError: it cannot be used; the message says what to do.
            LogFormatError: it is of another format, and was left untouched.
        """
        there = self._is_there()
        if self.path.is_dir():
            raise self.unavailable("it is a folder; name a file in it")
        if there and not self.path.is_file():
            # SQLite would wait for a writer of a pipe, for ever.
            raise self.unavailable("it is a device or a pipe; name a file")
        if not there and (must_exist or read_only):
            raise self.unavailable("there is no log; name one that exists")
        refuse_place(self.path)
        # Looking through a reader first leaves a log of another format untouched.
        log_id = self._look() if there else None
        if log_id is not None:
            return log_id
        if read_only:
            raise self.unavailable(NOT_OURS)
        return self._create(now_us)

    def hold(self) -> None:
        """Remember which files are open by now.

        SQLite deletes a WAL with the last connection only, one that reads
        included, so while one is open it stays the same.
        """
        # Not the path as it was named: that may be a link, or relative.
        files = [real(self.path), self._beside("-wal")]
        for path in files[:1] if self._immutable else files:
            with suppress(OSError):
                # The file is never made smaller; SQLite cuts its WAL.
                self._held.append(FileIdentity(path, only_grows=not self._held))
        if not self._immutable:
            with suppress(OSError):
                self._index = FileIdentity(self._beside("-shm"))

    def let_go(self) -> None:
        """Have `check` find nothing wrong any more: what is closed is nobody's."""
        held = filter(None, (*self._held, self._index))
        self._held, self._index = [], None
        for file in held:
            file.close()
        self._closed = True

    def check(self) -> None:
        """See that the file which is open is the one that others find at its path.

        SQLite goes on writing to a file that was removed, and all of it is gone
        when that is closed.

        Raises:
            LogLostError: it is not; stop.
        """
        for file in self._held:
            try:
                became = file.became()
            except OSError:
                continue  # it cannot be seen now, which says nothing of what is there
            if became is not None:
                what = file.path.name if file.path.name.endswith("-wal") else "the log"
                raise LogLostError(str(self.path), f"{what} {became}")

    def check_index(self) -> None:
        """See that others share the index of the WAL, the `-shm`; to be asked before a commit.

        Whoever opens a log without one makes another. From then on the two do
        not see what the other writes, and write over it.

        Raises:
            LogIndexLostError: they do not; stop, and write nothing more.
            LogLostError: see `check`.
        """
        now = monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        if (became := self.index_became()) is not None:
            self.check()  # it may be gone with all else
            raise LogIndexLostError(str(self.path), f"{self.path.name}-shm {became}")
        self._looked_at = now

    def index_became(self) -> str | None:
        """Say what became of the index; None while it is what others find, or nobody can tell."""
        with suppress(OSError):
            return None if self._index is None else self._index.became()
        return None

    def writer(self, *, create: bool = False) -> sqlite3.Connection:
        """Return a connection that writes, and that never waits for a lock."""
        try:
            # A log that somebody moved away must not come back empty.
            db = connect(self.path, "rwc" if create else "rw", PATIENCE_SECONDS)
            try:
                for pragma in _WRITER:
                    patiently(db, pragma)
                self._try_to_write(db)
            except sqlite_library().Error:
                db.close()
                raise
        except sqlite_library().Error as error:
            raise self.error(error) from error
        return db

    def reader(self) -> sqlite3.Connection:
        """Return a connection that only reads."""
        try:
            return self._reader("ro")
        except LogUnavailableError:
            # Where nothing may be written SQLite cannot make the files that
            # readers of a WAL share; they are not needed while there is no WAL.
            if self._is_there() and not self._has_wal():
                self._immutable = True
                return self._reader("ro&immutable=1")
            raise

    def error(self, error: Exception) -> StoreError:
        """Return what the operator is told of SQLite's *error*."""
        if self._closed:
            return self.unavailable("it was closed")
        try:
            self.check()
        except LogLostError as lost:
            return lost
        if is_busy(error):
            holder = lock_owner(self._beside("-shm"))
            who = f"process {holder}" if holder else "another process"
            fix = "try again, or end that one if it never lets go"
            return self.unavailable(f"{who} keeps it locked; {fix}")
        return self.unavailable(reason_of(error))

    def unavailable(self, reason: str) -> LogUnavailableError:
        """Return the error that says why this log cannot be used."""
        return LogUnavailableError(str(self.path), reason)

    def _is_there(self) -> bool:
        try:
            return self.path.exists()
        except OSError as error:
            raise self.unavailable(f"it cannot be looked at ({error.strerror})") from error

    def _beside(self, suffix: str) -> Path:
        # SQLite puts them beside the file, not beside a link to it.
        return Path(f"{real(self.path)}{suffix}")

    def _has_wal(self) -> bool:
        wal = self._beside("-wal")
        return wal.exists() and wal.stat().st_size > 0

    def _look(self) -> str | None:
        """Return the id of the log that is there; None where the file is empty."""
        db = self.reader()
        try:
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            if not tables:
                return None
            if "meta" not in tables:
                raise self.unavailable(NOT_OURS)
            found, log_id = db.execute("SELECT format, log_id FROM meta").fetchone()
        except sqlite_library().Error as error:
            raise self.error(error) from error
        finally:
            db.close()
        if found != FORMAT:
            raise LogFormatError(str(self.path), found, FORMAT)
        return str(log_id)

    def _create(self, now_us: int) -> str:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self.unavailable(f"its folder cannot be made ({error.strerror})") from error
        with suppress(OSError):  # SQLite finds out, and its error says what to do
            make_private(self.path)
        db = self.writer(create=True)
        try:
            patiently(db, "BEGIN IMMEDIATE")
            # Another process may have been quicker.
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in SCHEMA.strip().split("\n\n"):
                    db.execute(statement)
                meta = (1, FORMAT, uuid.uuid4().hex, now_us)
                db.execute(
                    "INSERT INTO meta (id, format, log_id, created_us) VALUES (?, ?, ?, ?)", meta
                )
            (log_id,) = db.execute("SELECT log_id FROM meta").fetchone()
            db.execute("COMMIT")
        except sqlite_library().Error as error:
            raise self.error(error) from error
        finally:
            db.close()
        return str(log_id)

    def _try_to_write(self, db: sqlite3.Connection) -> None:
        # SQLite opens what may not be written for reading, and begins a
        # transaction on it, without a word; only a change is refused.
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("PRAGMA user_version = 0")
            db.execute("ROLLBACK")
        except sqlite_library().OperationalError as error:
            if not is_busy(error):
                raise

    def _reader(self, mode: str) -> sqlite3.Connection:
        try:
            db = connect(self.path, mode, _READER_PATIENCE_SECONDS)
            try:
                db.execute("PRAGMA query_only = 1")
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            except sqlite_library().Error:
                db.close()
                raise
        except sqlite_library().Error as error:
            raise self.error(error) from error
        return db
