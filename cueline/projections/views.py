"""The file with the read models, which catches up with the log before it is read.

Rows and checkpoint change in one transaction that compares the
checkpoint, so several processes may do so at once. The file can be deleted at any time:
it is rebuilt from the log (I1).
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from cueline.errors import CorruptEventError, LogUnavailableError
from cueline.events.store import NO_TIME, EventStore, RecordedEvent, from_us, is_time
from cueline.files import shortage
from cueline.projections import words
from cueline.projections.approval import Approval
from cueline.projections.audit import AuditRow, Fault
from cueline.projections.breaker import Breaker
from cueline.projections.effect import Effect
from cueline.projections.fleet import WorkerRow
from cueline.projections.read_model import ReadModel, create, index_statements
from cueline.projections.relations import VIEWS
from cueline.projections.sandbox import Sandbox, Slot
from cueline.projections.session import SessionReadModel
from cueline.projections.sql_query import Found, query_file, refused
from cueline.projections.transcript import TranscriptLine
from cueline.projections.usage import DayUsage, UsageEntry
from cueline.sqlite_library import sqlite_library

if TYPE_CHECKING:
    from cueline.events.journal import Journal

VERSION = 25
"""The version; raise it with every change of a table or its content: old files are rebuilt."""
BATCH = 2000
"""Events in one transaction, which blocks the event loop for some 60 ms."""
PATIENCE_SECONDS = 10.0
"""The longest wait for another process's transaction."""
FILL = 20_000
"""So many events at once go to an empty file without its indexes, which are made afterwards."""
RETRY_SECONDS = 0.001
MODELS: tuple[type[ReadModel], ...] = (
    SessionReadModel,
    Effect,
    Approval,
    Breaker,
    DayUsage,
    UsageEntry,
    TranscriptLine,
    AuditRow,
    WorkerRow,
    Sandbox,
    Slot,
    Fault,
)
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'words_*'"
"""Without the tables in which FTS5 keeps its index."""
_VIEWS = "SELECT name FROM sqlite_schema WHERE type = 'view'"
_CANNOT_OPEN = 14
_BUSY = frozenset({5, 6})
_DAMAGED = frozenset({11, 26})
"""SQLite's primary result codes; they never change."""
_PRAGMAS = (
    f"PRAGMA busy_timeout = {PATIENCE_SECONDS * 1000:.0f}",
    # A power cut may undo the last transactions here; the log has the events.
    "PRAGMA synchronous = NORMAL",
    "PRAGMA cache_size = -32768",
    # What was removed from the log does not stay in free pages.
    "PRAGMA secure_delete = ON",
    # Otherwise a WAL that grew during a read keeps its size for ever.
    "PRAGMA journal_size_limit = 67108864",
)


_INDEXES = {
    statement.split()[2]: statement for model in MODELS for statement in index_statements(model)
}
"""The statements that make the indexes, by the name of the index."""
_NAMED = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"

Progress = Callable[[int, int], None]
"""Is called with the position that was projected, and the last position of the log."""


def no_progress(position: int, end: int) -> None:
    """Do nothing."""


class Checkpoint(NamedTuple):
    """The position up to which events were projected, and the hash of that event."""

    position: int = 0
    hash: bytes = b""


class Views:
    """The read models of one log; queries take its `db`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._half_renewed = False
        self._filling = False
        with self._translated():
            try:
                self.db = self._open()
            except sqlite_library().DatabaseError as error:
                if _code_of(error) not in _DAMAGED:
                    raise
                self._renew()

    @property
    def schema(self) -> str:
        """The name by which a query reaches a table although a view hides it."""
        return "main"

    @property
    def checkpoint(self) -> Checkpoint:
        """The current checkpoint."""
        found = self.db.execute("SELECT position, hash FROM checkpoint").fetchone()
        return Checkpoint(*found)

    async def catch_up(
        self, store: EventStore, *, batch: int | None = None, progress: Progress = no_progress
    ) -> int:
        """Project the new events of the log, and return the position.

        Each *batch* of events is one transaction, which blocks the event loop meanwhile.
        *progress* is called after each batch.

        Raises:
            LogUnavailableError: the file cannot be written; check disk or permissions.
            CorruptEventError: the log is damaged; the events before the damage are projected.
        """
        with self._translated():
            try:
                if self._half_renewed:
                    self._renew()
                return await self._catch_up(store, batch or BATCH, progress)
            except sqlite_library().DatabaseError as error:
                if _code_of(error) not in _DAMAGED:
                    raise
                self._renew()
                return await self._catch_up(store, batch or BATCH, progress)

    async def clear(self) -> None:
        """Delete all rows; the next `catch_up` begins at 0."""
        with self._translated():
            await self._begin()
            with self._committed():
                self._create()

    async def query(self, query: str, limit: int) -> Found:
        """Return the first rows of a query of a user, which may take some seconds.

        Raises:
            ConfigError: it is no query, it does more than to read, or it takes too long.
        """
        if str(self.path) == ":memory:":
            raise refused("the read models need a file, which cannot be written here")
        return await query_file(self.path, query, limit)

    def keep_to(self, tenant: str) -> None:
        """Hide the rows of other tenants from all later queries of this connection."""
        where = f"substr(stream, instr(stream, '-') + 1, {len(tenant) + 1}) = '{tenant}/'"
        for model in MODELS:
            if "stream" in model.__dataclass_fields__:
                # A temporary view hides the table of its name.
                rows = f'SELECT * FROM "{self.schema}".{model.TABLE} WHERE {where}'  # noqa: S608 - our own names
                self.db.execute(f"CREATE TEMP VIEW {model.TABLE} AS {rows}")
        # Those of the file see its tables, also hidden ones.
        for name, query in VIEWS.items():
            self.db.execute(f"CREATE TEMP VIEW {name} AS {query}")

    def overwrite_forgotten(self) -> None:
        """Remove what the full-text index still has of forgotten words."""
        with self._translated():
            self.db.execute(words.OVERWRITE)

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    async def _catch_up(self, store: EventStore, size: int, progress: Progress) -> int:
        end = await store.last_position()
        if not await self.belongs_to(store):
            await self.clear()
        if end > FILL and not self.checkpoint.position:
            await self._begin_fill()
        try:
            position = await self._project(store, size, end, progress)
        except CorruptEventError:
            await self._end_fill()
            raise
        await self._end_fill()
        return position

    async def _begin_fill(self) -> None:
        """Drop the indexes of an empty file: made at the end, they take less time."""
        await self._begin()
        with self._committed():
            if not self.checkpoint.position:
                for name in _INDEXES:
                    self.db.execute(f"DROP INDEX IF EXISTS {name}")
        self._filling = True
        # A power cut may damage the file: then it is filled again.
        self.db.execute("PRAGMA synchronous = OFF")
        # There is nothing yet that could have been removed from the log.
        self.db.execute("PRAGMA secure_delete = OFF")

    async def _end_fill(self) -> None:
        """Make the indexes that a fill left out, also one that was cut off."""
        there = {name for (name,) in self.db.execute(_NAMED)}
        missing = [each for name, each in _INDEXES.items() if name not in there]
        for statement in missing:
            await self._begin()
            with self._committed():
                self.db.execute(statement.replace("INDEX", "INDEX IF NOT EXISTS", 1))
        if self._filling:
            self.db.execute("PRAGMA synchronous = NORMAL")
            self.db.execute("PRAGMA secure_delete = ON")
            self._filling = False

    async def _project(self, store: EventStore, size: int, end: int, progress: Progress) -> int:
        if self.checkpoint.position >= end:
            return self.checkpoint.position
        # As in `_advance`: facts are imported only to catch up.
        from cueline.events.codec import Codec  # noqa: PLC0415
        from cueline.events.journal import Journal  # noqa: PLC0415

        journal = Journal(store, Codec(), lambda: from_us(0))
        while (seen := self.checkpoint).position < end:
            progress(seen.position, end)
            batch = await _read_batch(journal, seen.position, size)
            await self._begin()
            with self._committed():
                # Another process may have caught up meanwhile: continue from there.
                if self.checkpoint == seen:
                    self._advance(seen, batch)
        progress(seen.position, seen.position)
        return seen.position

    async def belongs_to(self, store: EventStore) -> bool:
        """Whether the log's event at the checkpoint is the one that was projected."""
        seen = self.checkpoint
        if not seen.position:
            return True
        return [seen.hash] == [e.hash async for e in store.read_all(seen.position - 1, limit=1)]

    def _advance(self, seen: Checkpoint, batch: Sequence[tuple[RecordedEvent, object]]) -> None:
        # Not at the top: it imports all facts, and a list that is up to date needs none.
        from cueline.projections.projector import Projector  # noqa: PLC0415

        projector = Projector(self.db)
        for position, (recorded, fact) in enumerate(batch, start=seen.position + 1):
            assert position == recorded.position, f"{position} is missing in the log"
            projector.project(recorded, fact)
        projector.flush()
        last = batch[-1][0]
        self.db.execute("UPDATE checkpoint SET position = ?, hash = ?", [last.position, last.hash])

    def _open(self) -> Connection:
        if str(self.path) != ":memory:":
            # Private, as the log is; an existing file keeps its permissions.
            with suppress(OSError):
                self.path.touch(0o600, exist_ok=False)
        # Without a time limit here it would wait for 5 s, in growing steps.
        db: Connection = sqlite_library().connect(self.path, timeout=0, isolation_level=None)
        self.db = db
        _retry_while_busy(db, "PRAGMA journal_mode = WAL")
        for pragma in _PRAGMAS:
            db.execute(pragma)
        if _version(db) != VERSION:
            db.execute("BEGIN IMMEDIATE")
            with self._committed():
                if _version(db) != VERSION:
                    self._create()
        db.execute("PRAGMA busy_timeout = 0")
        return db

    def _renew(self) -> None:
        """Replace a damaged file by an empty one."""
        self._half_renewed = True  # otherwise a failure here would leave nothing open
        self.db.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{self.path}{ending}").unlink(missing_ok=True)
        self.db = self._open()
        self._half_renewed = False

    def _create(self) -> None:
        for (view,) in self.db.execute(_VIEWS).fetchall():
            self.db.execute(f'DROP VIEW "{view}"')
        for (table,) in self.db.execute(TABLES).fetchall():
            self.db.execute(f'DROP TABLE "{table}"')
        for model in MODELS:
            create(self.db, model)
        self.db.execute(words.CREATE)
        for name, query in VIEWS.items():
            self.db.execute(f"CREATE VIEW {name} AS {query}")
        self.db.execute("CREATE TABLE checkpoint (position INTEGER, hash BLOB) STRICT")
        self.db.execute("INSERT INTO checkpoint VALUES (?, ?)", Checkpoint())
        self.db.execute(f"PRAGMA user_version = {VERSION}")

    async def _begin(self) -> None:
        """Begin a write transaction once no other runs; the caller must not await in it."""
        deadline = monotonic() + PATIENCE_SECONDS
        while True:
            try:
                # Deferred, two processes could both compare the checkpoint, and one would fail
                # instead of wait.
                self.db.execute("BEGIN IMMEDIATE")
            except sqlite_library().OperationalError as error:
                if _code_of(error) not in _BUSY or monotonic() > deadline:
                    raise
                # SQLite's own waiting would block the loop.
                never = asyncio.get_running_loop().create_future()
                await asyncio.wait({never}, timeout=RETRY_SECONDS)
            else:
                return

    @contextmanager
    def _committed(self) -> Iterator[None]:
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            # On a full disk, SQLite has ended the transaction itself.
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite_library().OperationalError) as error:
            said = shortage() if _code_of(error) == _CANNOT_OPEN else None
            raise LogUnavailableError(str(self.path), said or str(error)) from error


def _code_of(error: Exception) -> int:
    """Return SQLite's primary result code of *error*; 0 without one."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _retry_while_busy(db: Connection, statement: str) -> None:
    """Run *statement*, and retry while others are busy, because SQLite fails at once here."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            db.execute(statement)
        except sqlite_library().OperationalError as error:
            if _code_of(error) not in _BUSY or monotonic() > deadline:
                raise
            Event().wait(RETRY_SECONDS)
        else:
            return


def _version(db: Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


async def _read_batch(
    journal: "Journal", after: int, size: int
) -> Sequence[tuple[RecordedEvent, object]]:
    """Read and decode the events after position *after*."""
    batch: list[tuple[RecordedEvent, object]] = []
    try:
        async for recorded, fact in journal.read_all(after, limit=size):
            _check_time(recorded)
            batch.append((recorded, fact))  # the events before the damage count
    except CorruptEventError:
        if not batch:
            raise
    return batch


def _check_time(recorded: RecordedEvent) -> None:
    if not is_time(recorded.recorded_us):
        raise CorruptEventError(*recorded[:3], NO_TIME)
