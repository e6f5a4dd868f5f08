"""Checks the file of a log, and opens connections to it."""

import os
import sqlite3
import uuid
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from time import monotonic

from cueline.errors import (
    ConfigError,
    LogFormatError,
    LogIndexLostError,
    LogLostError,
    LogUnavailableError,
    StoreError,
)
from cueline.files import LOG_FOLDER, Trust, make_folder, personal_folder
from cueline.sqlite_library import NOT_OURS, is_busy, reason_of, sqlite_library
from cueline.stores.file_identity import FileIdentity, lock_owner, refuse_place
from cueline.stores.log_copy import unfinished
from cueline.stores.sqlite_schema import FORMAT, SCHEMA

PATIENCE_SECONDS = 10.0
"""The longest wait for another process's transaction."""
RETRY_SECONDS = 0.0005
"""The pause between attempts; SQLite's own pauses grow to 100 ms, and starve most processes."""

LOOK_SECONDS = 0.02
"""The shortest interval of checks for the index; opening a log takes longer."""

_READER_PATIENCE_SECONDS = 1.0
"""The wait of readers, who wait only while another process recovers the WAL."""
_WRITER = (
    # The file stores the mode; setting it again costs nothing.
    "PRAGMA journal_mode = WAL",
    # NORMAL loses acknowledged commits in a power cut.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA foreign_keys = ON",
    # Without it, INSERT OR REPLACE bypasses the triggers against deleting.
    "PRAGMA recursive_triggers = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -32768",
    # In pages. While the WAL grows, a commit also waits for its file's new length.
    "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA busy_timeout = 0",
)


_VACUUM_SECONDS = 10.0


def connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """Return a connection that starts transactions only by statement."""
    db: sqlite3.Connection = sqlite_library().connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        # A commit may run in the writer's thread; never two at a time.
        check_same_thread=False,
    )
    return db


def vacuum(path: Path) -> None:
    """Write a file anew: in free pages, and where rows moved away, it has what was removed.

    Raises:
        LogUnavailableError: it cannot be written, or another process uses it.
    """
    try:
        with closing(connect(path, "rw", _VACUUM_SECONDS)) as db:
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite_library().Error as error:
        raise LogUnavailableError(str(path), reason_of(error, path)) from error
    if busy:
        raise LogUnavailableError(str(path), "other processes use it; end them, and try again")


def real(path: Path) -> Path:
    """Return the file that *path* leads to; `Path.resolve` fails on a circle of links."""
    return Path(os.path.realpath(path))


def make_private(path: Path) -> None:
    """Create an empty file with access for its owner only, unless the file exists.

    SQLite gives the files beside it the same permissions.
    """
    # An existing file is never opened: closing it would drop all locks that this process has on it.
    with suppress(FileExistsError):
        real(path).touch(0o600, exist_ok=False)


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file at *path*; None without a file.

    Raises:
        OSError: the file system cannot be read.
    """
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def retry_while_busy(db: sqlite3.Connection, statement: str) -> None:
    """Run *statement*, and retry while others are busy, because SQLite fails at once here."""
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
    """The place of a log, and its connections.

    Only SQLite opens the file here: closing a file drops every lock that the process
    has on it, also those of another connection.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: list[FileIdentity] = []
        self._index: FileIdentity | None = None
        self._looked_at = 0.0
        self._immutable = False
        """Whether it was opened without a WAL."""
        self._closed = False

    def open(self, *, must_exist: bool, read_only: bool, now_us: int, copying: bool = False) -> str:
        """Create the log if it is missing; return its id.

        Only *copying* opens an unfinished copy.

        Raises:
            LogUnavailableError: it cannot be used; the message says what to do.
            LogFormatError: it has another format; nothing was changed.
        """
        there = self._is_there()
        if self.path.is_dir():
            raise self.unavailable("it is a folder; name a file in it")
        if there and not self.path.is_file():
            # SQLite would wait without end for a writer of a pipe.
            raise self.unavailable("it is a device or a pipe; name a file")
        if not there and (must_exist or read_only):
            raise self.unavailable("there is no log; name one that exists")
        refuse_place(self.path)
        # Reading it first leaves a log of another format unchanged.
        log_id = self._look() if there else None
        if log_id is not None:
            if not copying and (reason := unfinished(log_id)):
                raise self.unavailable(reason)
            return log_id
        if read_only:
            raise self.unavailable(NOT_OURS)
        return self._create(now_us)

    def hold(self) -> None:
        """Remember which files are open now.

        SQLite deletes a WAL only with the last connection, readers included, so while one is
        open the WAL stays the same file.
        """
        # Not the given path, because that may be a link, or relative.
        files = [real(self.path), self._beside("-wal")]
        for path in files[:1] if self._immutable else files:
            with suppress(OSError):
                # The file is never made smaller; SQLite truncates its WAL.
                self._held.append(FileIdentity(path, only_grows=not self._held))
        if not self._immutable:
            with suppress(OSError):
                self._index = FileIdentity(self._beside("-shm"))

    def let_go(self) -> None:
        """Stop checking: the files are closed."""
        held = filter(None, (*self._held, self._index))
        self._held, self._index = [], None
        for file in held:
            file.close()
        self._closed = True

    def check(self) -> None:
        """Check that the open file is still the file at its path.

        SQLite continues to write to a removed file, and all of these writes are lost on close.

        Raises:
            LogLostError: another file is at the path; stop.
        """
        for file in self._held:
            try:
                became = file.became()
            except OSError:
                continue  # a read that fails now is no evidence about the file
            if became is not None:
                what = file.path.name if file.path.name.endswith("-wal") else "the log"
                raise LogLostError(str(self.path), f"{what} {became}")

    def check_index(self) -> None:
        """Check that others use the same index of the WAL, the `-shm`; call it before a commit.

        A process that opens a log without an index creates a new index. From then on, processes
        with different indexes do not find each other's writes, and overwrite them.

        Raises:
            LogIndexLostError: others use another index; stop writing.
            LogLostError: see `check`.
        """
        now = monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        if (became := self.index_became()) is not None:
            self.check()  # the index may be gone together with the log
            raise LogIndexLostError(str(self.path), f"{self.path.name}-shm {became}")
        self._looked_at = now

    def index_became(self) -> str | None:
        """Return the change of the index; None if it is unchanged or unknown."""
        with suppress(OSError):
            return None if self._index is None else self._index.became()
        return None

    def writer(self, *, create: bool = False) -> sqlite3.Connection:
        """Return a connection for writing that never waits for a lock."""
        try:
            # A log that was moved away must not come back empty.
            db = connect(self.path, "rwc" if create else "rw", PATIENCE_SECONDS)
            try:
                for pragma in _WRITER:
                    retry_while_busy(db, pragma)
                self._try_to_write(db)
            except sqlite_library().Error:
                db.close()
                raise
        except sqlite_library().Error as error:
            raise self.error(error) from error
        return db

    def reader(self) -> sqlite3.Connection:
        """Return a connection for reading."""
        try:
            return self._reader("ro")
        except LogUnavailableError:
            # On a read-only disk SQLite cannot create the files that readers of a WAL share;
            # without a WAL they are not needed.
            if self._is_there() and not self._has_wal():
                self._immutable = True
                return self._reader("ro&immutable=1")
            raise

    def error(self, error: Exception) -> StoreError:
        """Return the operator's error for SQLite's *error*."""
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
        return self.unavailable(reason_of(error, Path(self.path)))

    def unavailable(self, reason: str) -> LogUnavailableError:
        """Return the error with the reason why this log cannot be used."""
        return LogUnavailableError(str(self.path), reason)

    def _is_there(self) -> bool:
        try:
            return self.path.exists()
        except OSError as error:
            raise self.unavailable(f"it cannot be looked at ({error.strerror})") from error

    def _beside(self, suffix: str) -> Path:
        # SQLite creates them beside the file, not beside a link to it.
        return Path(f"{real(self.path)}{suffix}")

    def _has_wal(self) -> bool:
        wal = self._beside("-wal")
        return wal.exists() and wal.stat().st_size > 0

    def _look(self) -> str | None:
        """Return the id of the log; None for an empty file."""
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
            make_folder(self.path.parent)
        except OSError as error:
            raise self.unavailable(f"its folder cannot be made ({error.strerror})") from error
        with suppress(OSError):  # SQLite reports the error
            make_private(self.path)
        db = self.writer(create=True)
        try:
            retry_while_busy(db, "BEGIN IMMEDIATE")
            # Another process may have been faster.
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in SCHEMA.strip().split("\n\n"):
                    db.execute(statement)
                meta = (1, FORMAT, uuid.uuid4().hex, now_us)
                db.execute(
                    "INSERT INTO meta (id, format, log_id, created_us) VALUES (?, ?, ?, ?)", meta
                )
            (log_id,) = db.execute("SELECT log_id FROM meta").fetchone()
            if self.path.parent.name == LOG_FOLDER:
                # First: a process that is killed in between must not leave a log without trust.
                with suppress(ConfigError):
                    Trust(personal_folder(os.environ)).add(self.path, log_id.encode())
            db.execute("COMMIT")
        except sqlite_library().Error as error:
            raise self.error(error) from error
        finally:
            db.close()
        return str(log_id)

    def _try_to_write(self, db: sqlite3.Connection) -> None:
        # SQLite opens a read-only file for reading, and begins a transaction without an error; only
        # a change fails.
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
