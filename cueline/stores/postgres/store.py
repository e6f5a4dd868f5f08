"""The log in PostgreSQL: durable, for all processes that reach the server."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from typing import Final

import psycopg
from psycopg import sql

from cueline.clock import Clock
from cueline.errors import (
    BlobTooLargeError,
    CorruptEventError,
    LogFormatError,
    LogUnavailableError,
    MissingBlobError,
    StoreError,
)
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore, emptied_streams
from cueline.events.store import BLOB_LIMIT, Appended, Head, RecordedEvent, Write, to_us
from cueline.events.stream import check_stream
from cueline.stores.append_rules import BLOB_REST, check_form, check_text
from cueline.stores.log_copy import unfinished
from cueline.stores.paging import LogPage, PagedStore, Span, faults, unbroken
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.connections import (
    PATIENCE_SECONDS,
    RETRY_SECONDS,
    Connections,
    Row,
    connect,
    connected,
    discard,
)
from cueline.stores.postgres.migration import FORMAT
from cueline.stores.postgres.presence_snapshots import PostgresSnapshots
from cueline.stores.postgres.sql import clock_us, state_of, translated, unescaped
from cueline.stores.postgres.writer import Acquire, Append, PostgresWriter
from cueline.stores.tables import EVENT_COLUMNS
from cueline.stores.waiting import Notifier, pause

PAGE_EVENTS = 256

_HEADS = "SELECT name, version, epoch, owner FROM streams WHERE name = ANY (%s)"
_LAST = "SELECT coalesce(max(position), 0) FROM events"
_LINE = """
WITH RECURSIVE line AS (
    SELECT id, name, version, parent, parent_version, 1 AS place FROM streams WHERE name = %s
    UNION ALL
    SELECT s.id, s.name, s.version, s.parent, s.parent_version, line.place + 1
    FROM line JOIN streams s ON s.id = line.parent
)
SELECT id, name, version, parent_version FROM line ORDER BY place
"""
_STREAM_PAGE = f"""
SELECT %s::text, {EVENT_COLUMNS} FROM events e
WHERE e.stream = %s AND e.version > %s AND e.version <= %s ORDER BY e.version LIMIT {PAGE_EVENTS}
"""  # noqa: S608 - the columns are ours
_STREAM_PAGE_BACK = _STREAM_PAGE.replace("ORDER BY e.version", "ORDER BY e.version DESC")
_LOG_PAGE = f"""
SELECT s.name, {EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream
WHERE e.position > %s AND e.position <= %s ORDER BY e.position
"""  # noqa: S608 - the columns are ours
_CATEGORY_PAGE = _LOG_PAGE.replace("ORDER BY", "AND s.category = ANY (%s) ORDER BY")
_PLACE = "SELECT position FROM events WHERE stream = %s AND version = %s"
_HOLES = """
SELECT n FROM generate_series(%s::bigint, %s::bigint) AS n
WHERE NOT EXISTS (SELECT FROM events WHERE position = n) ORDER BY n LIMIT 1
"""
_TEXTS = (3, 9, 10, 11, 12)
"""The fields of an event that may contain NUL: type, actor, attrs and the two ids."""


class PostgresReader:
    """A `PageReader` whose pages are a transaction each."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        heads = dict.fromkeys(streams, Head())
        for name, version, epoch, owner in await self._connections.ask(_HEADS, (list(heads),)):
            heads[name] = Head(version, epoch, None if owner is None else unescaped(owner))
        return heads

    async def last_position(self) -> int:
        [[last]] = await self._connections.ask(_LAST)
        return int(last)

    async def line(self, stream: str, after: int, until: int | None) -> Sequence[Span]:
        spans: list[Span] = []
        for id_, name, version, base in await self._connections.ask(_LINE, (stream,)):
            until = version if until is None else min(until, version)
            spans.append(Span(id_, name, max(after, base or 0), until))
            until = min(until, base) if base is not None else None
        return [span for span in reversed(spans) if span.after < span.until]

    async def stream_page(self, span: Span) -> Sequence[RecordedEvent]:
        events = await self._stream_events(_STREAM_PAGE, span)
        whole = unbroken([event.version for event in events], span.after)
        if not whole:
            raise await self._broken(span, span.after + 1)
        return events[:whole]

    async def stream_page_back(self, span: Span) -> Sequence[RecordedEvent]:
        events = await self._stream_events(_STREAM_PAGE_BACK, span)
        whole = [e for place, e in enumerate(events) if e.version == span.until - place]
        if not whole:
            raise await self._broken(span, span.until)
        return whole

    async def log_page(self, after: int, until: int, categories: Collection[str] | None) -> LogPage:
        until = min(until, after + PAGE_EVENTS)
        if categories is not None:
            asked = (after, until, list(categories))
            return LogPage(_recorded(await self._connections.ask(_CATEGORY_PAGE, asked)), until)
        events = _recorded(await self._connections.ask(_LOG_PAGE, (after, until)))
        whole = unbroken([event.position for event in events], after)
        if not whole:
            holes = await self._connections.ask(_HOLES, (after + 1, until))
            # Without a hole, the row of the event's stream is missing.
            place = holes[0][0] if holes else after + 1
            raise CorruptEventError("?", 0, place, "it is missing")
        return LogPage(events[:whole], after + whole)

    async def _stream_events(self, statement: str, span: Span) -> Sequence[RecordedEvent]:
        asked = (span.name, span.stream, span.after, span.until)
        return _recorded(await self._connections.ask(statement, asked))

    async def _broken(self, span: Span, version: int) -> CorruptEventError:
        rows = await self._connections.ask(_PLACE, (span.stream, version))
        return CorruptEventError(span.name, version, rows[0][0] if rows else 0, "it is missing")


def _recorded(rows: Sequence[Row]) -> list[RecordedEvent]:
    return [RecordedEvent._make(_unescaped(row)) for row in rows]


def _unescaped(row: Row) -> Row:
    texts = [row[place] for place in _TEXTS]
    if "\x01" not in "".join(filter(None, texts)):
        return row
    changed = list(row)
    for place, text in zip(_TEXTS, texts, strict=True):
        changed[place] = None if text is None else unescaped(text)
    return tuple(changed)


POLL_SECONDS: Final = 1.0
"""The interval at which a follower polls, without notifications."""
READERS: Final = 2
"""The most reading connections of a process."""
_META = "SELECT format, log_id FROM meta"
_BLOB = "SELECT content FROM blobs WHERE hash = %s"
_PUT_BLOB = "SELECT put_blob(%s, %s, %s)"
_COLLECT = "SELECT collect_blobs(%s, %s)"


class PostgresStore(PagedStore):
    """A log in one schema of a database; `find_log` checks whether it exists; see `EventStore`.

    Any process may append. Redacting events also deletes the *snapshots* folded from them,
    which are closed with the store. Use a store in one event loop.
    """

    def __init__(
        self,
        address: Address,
        log_id: str,
        clock: Clock,
        *,
        read_only: bool = False,
        snapshots: PostgresSnapshots | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.address = address
        self.log_id = log_id
        """See `EventStore.log_id`."""
        self._clock = clock
        self._kept = snapshots
        self._snapshots: SnapshotStore = snapshots or NO_SNAPSHOTS
        self._read_only = read_only
        self._reading = Connections(address, READERS, patience_seconds=patience_seconds)
        self._reader = PostgresReader(self._reading)
        super().__init__(self._reader)
        self._writer = PostgresWriter(
            address, log_id, clock, self._heard, patience_seconds=patience_seconds
        )
        self._patience_seconds = patience_seconds
        self._bell = Notifier()
        self._head = 0
        """The last known position."""
        self._listening: asyncio.Task[None] | None = None
        self._listens = asyncio.Event()
        self._failure: StoreError | None = None

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        check_text(owner)
        check_stream(stream)
        epoch: int = await self._writes().do(Acquire(stream, owner, seen_epoch))
        return epoch

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        size = check_form(writes, key)
        for write in writes:
            for stream in (write.stream, *(write.after or ())[:1], *dict(write.empties)):
                check_stream(stream)
        # Before the append, in case this process is killed; after it, in case a snapshot was
        # written meanwhile.
        if emptied := emptied_streams(writes):
            await self._snapshots.forget(emptied)
        appended: Appended = await self._writes().do(Append(writes, key, size))
        if emptied:
            await self._snapshots.forget(emptied)
        return appended

    async def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())
        # From now on, each append is notified or found by a read.
        await self._listens.wait()
        while True:
            self._check_open()
            last = await self._reader.last_position()
            while after < last:
                page = await self._reader.log_page(after, last, categories)
                for event in page.events:
                    yield event
                after = page.seen
            self._heard(last)
            while self._head <= after and self._failure is None:
                await self._bell.wait()

    async def put_blob(self, content: bytes) -> str:
        if len(content) > BLOB_LIMIT:
            raise BlobTooLargeError(len(content), BLOB_LIMIT)
        self._writes()
        asked = (self.log_id, content, clock_us(self._clock))
        [[blob]] = await self._reading.ask(_PUT_BLOB, asked)
        return str(blob)

    async def get_blob(self, blob: str) -> bytes:
        rows = await self._reading.ask(_BLOB, (blob,))
        # Content with another hash is not the blob.
        if not rows or sha256(rows[0][0]).hexdigest() != blob:
            raise MissingBlobError("the log", blob)
        return bytes(rows[0][0])

    async def faults(self) -> list[CorruptEventError]:
        return await asyncio.to_thread(self._faults)

    async def collect_blobs(self, now: datetime) -> int:
        """Delete blobs without references that are a day old; return their number."""
        self._writes()
        asked = (self.log_id, to_us(now - BLOB_REST))
        [[gone]] = await self._reading.ask(_COLLECT, asked)
        return int(gone)

    async def close(self) -> None:
        self._failure = LogUnavailableError(self.address.name, "it was closed")
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._writer.close()
        await self._reading.close()
        if self._kept is not None:
            await self._kept.close()
        self._listens.set()
        self._bell.ring()

    def _faults(self) -> list[CorruptEventError]:
        with connected(self.address) as db, db.transaction():
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            return list(faults(lambda statement: db.execute(statement.encode(), binary=True)))

    def _writes(self) -> PostgresWriter:
        if self._read_only:
            raise LogUnavailableError(self.address.name, "it was opened for reading only")
        self._check_open()
        return self._writer

    def _check_open(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _heard(self, position: int) -> None:
        """Wake all waiters if *position* is after the last known position."""
        if position > self._head:
            self._head = position
            self._bell.ring()

    async def _listen(self) -> None:
        """Listen for appends of other processes until the store is closed or the server is gone."""
        try:
            while True:
                with suppress(psycopg.Error):
                    await self._listen_once()
                # After a restart of the server, the read waits, and finds appends without notice.
                await pause(RETRY_SECONDS)
                self._heard(await self._reader.last_position())
        except StoreError as error:
            # Waiters read again, and get the error.
            self._failure = error
            self._listens.set()
            self._bell.ring()

    async def _listen_once(self) -> None:
        connection = await connect(self.address)
        try:
            await connection.execute(_listen_to(self.log_id))
            self._listens.set()
            while True:
                async for told in connection.notifies(timeout=POLL_SECONDS, stop_after=None):
                    self._heard(int(told.payload))
                self._heard(await self._reader.last_position())
        finally:
            await discard(connection)


def find_log(address: Address) -> str | None:
    """Return the id of the log at *address*; None if the address has no log.

    Raises:
        LogUnavailableError: the server cannot be reached, or refuses.
        LogFormatError: another format wrote it.
    """
    with connected(address) as db:
        try:
            row = db.execute(_META.encode()).fetchone()
        except psycopg.Error as error:
            if state_of(error) in {"42P01", "3F000"}:
                return None
            raise translated(error, address) from error
    if row is None:
        return None
    if row[0] != FORMAT:
        raise LogFormatError(address.name, row[0], FORMAT)
    if reason := unfinished(row[1]):
        raise LogUnavailableError(address.name, reason)
    return str(row[1])


def _listen_to(log_id: str) -> sql.Composed:
    return sql.SQL("LISTEN {}").format(sql.Identifier(f"cueline_{log_id}"))
