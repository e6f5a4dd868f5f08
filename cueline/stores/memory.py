"""The log in memory: for tests, and for runs that need no log."""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from itertools import takewhile
from operator import attrgetter
from uuid import uuid4

from cueline.clock import Clock
from cueline.errors import (
    BlobTooLargeError,
    CorruptEventError,
    LogUnavailableError,
    MissingBlobError,
)
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore, emptied_streams
from cueline.events.store import (
    BLOB_LIMIT,
    GENESIS,
    NO_STREAM,
    Appended,
    Head,
    RecordedEvent,
    Write,
    to_us,
)
from cueline.events.stream import category_of
from cueline.stores.append_rules import BLOB_REST, Batch, check_form, check_text
from cueline.stores.tables import EventRow, First, LastEvent, StreamRow
from cueline.stores.waiting import Notifier, take_turns


@dataclass(slots=True, eq=False)
class _Stream:
    id: int
    name: str
    epoch: int = 0
    owner: str | None = None
    parent: "_Stream | None" = None
    base: int = NO_STREAM
    """The version of the parent at which the stream begins."""
    events: list[RecordedEvent] = field(default_factory=list)

    @property
    def version(self) -> int:
        return self.base + len(self.events)

    def line(self, until: int | None) -> "Iterator[tuple[_Stream, int | None]]":
        """Yield the ancestors and this stream, oldest first, each with its last version to read."""
        if self.parent is not None:
            yield from self.parent.line(self.base if until is None else min(until, self.base))
        yield self, until


class MemoryTables:
    """The tables of a batch, in lists and dicts; see `Tables`."""

    def __init__(self) -> None:
        self.log_id = uuid4().hex
        self.bell = Notifier()
        """Notifies when the log has grown or was closed."""
        self.streams: dict[str, _Stream] = {}
        self.log: list[RecordedEvent] = []
        self.blobs: dict[str, tuple[bytes, int]] = {}
        """The content and the time of storing, by hash."""
        self.named: dict[int, list[str]] = {}
        """The blobs that an event names, by the event's position."""
        self._by_id: dict[int, _Stream] = {}
        self._appends: dict[tuple[int, str], First] = {}

    def last(self) -> tuple[int, int]:
        return (len(self.log), self.log[-1].recorded_us) if self.log else (0, 0)

    def find(self, name: str) -> StreamRow | None:
        kept = self.streams.get(name)
        if kept is None:
            return None
        head = kept.events[-1].hash if kept.events else GENESIS
        return StreamRow(kept.id, name, kept.version, kept.epoch, head)

    def find_all(self, names: Collection[str]) -> Sequence[StreamRow]:
        return [row for row in map(self.find, names) if row is not None]

    def last_event(self, stream: int) -> LastEvent | None:
        events = self._by_id[stream].events[-1:]
        return next((LastEvent(e.version, e.position, e.epoch, e.hash) for e in events), None)

    def create(self, name: str) -> int:
        kept = _Stream(len(self.streams) + 1, name)
        self.streams[name] = self._by_id[kept.id] = kept
        return kept.id

    def own(self, stream: int, epoch: int, owner: str) -> None:
        self._by_id[stream].epoch = epoch
        self._by_id[stream].owner = owner

    def branch(self, stream: int, parent: int, version: int) -> None:
        self._by_id[stream].parent = self._by_id[parent]
        self._by_id[stream].base = version

    def claim(self, stream: int, key: str, first: First) -> bool:
        return self._appends.setdefault((stream, key), first) is first

    def find_append(self, stream: int, key: str) -> First | None:
        return self._appends.get((stream, key))

    def find_owned(self, stream: int, epoch: int, version: int) -> First | None:
        kept = self._by_id.get(stream)
        place = version - kept.base - 1 if kept else -1
        if kept is None or not 0 <= place < len(kept.events):
            return None
        event = kept.events[place]
        if (event.epoch, event.seq) != (epoch, 0):
            return None
        later = self.log[event.position :]
        return First(event.position, 1 + sum(1 for _ in takewhile(attrgetter("seq"), later)))

    def events(self, first: First) -> Sequence[RecordedEvent]:
        return self.log[first.position - 1 : first.position - 1 + first.length]

    def hash_at(self, stream: int, version: int) -> bytes:
        kept = self._by_id[stream]
        while version <= kept.base and kept.parent is not None:
            kept = kept.parent
        return kept.events[version - kept.base - 1].hash

    def has_blob(self, blob: str) -> bool:
        return blob in self.blobs

    def write(
        self,
        events: Sequence[EventRow],
        blobs: Sequence[tuple[str, int]],
        moved: Collection[StreamRow],  # noqa: ARG002 - lists know their length
    ) -> None:
        for stream, *fields in events:
            kept = self._by_id[stream]
            event = RecordedEvent(kept.name, *fields)
            kept.events.append(event)
            self.log.append(event)
        for blob, position in blobs:
            self.named.setdefault(position, []).append(blob)

    def empty(self, stream: int, version: int) -> None:
        kept = self._by_id[stream]
        event = kept.events[version - kept.base - 1]
        emptied = event._replace(payload=None, salt=None)
        kept.events[version - kept.base - 1] = self.log[event.position - 1] = emptied
        for blob in self.named.pop(event.position, []):
            if not self.names(blob):
                self.blobs.pop(blob, None)

    def names(self, blob: str) -> bool:
        """Whether an event names the blob."""
        return any(blob in blobs for blobs in self.named.values())


class MemoryStore:
    """An `EventStore` in the memory of this process. Stores with the same tables share a log."""

    def __init__(
        self,
        clock: Clock,
        tables: MemoryTables | None = None,
        snapshots: SnapshotStore = NO_SNAPSHOTS,
    ) -> None:
        self._clock = clock
        self._tables = MemoryTables() if tables is None else tables
        self._bell = self._tables.bell
        self._closed = False
        self._snapshots = snapshots

    @property
    def log_id(self) -> str:
        return self._tables.log_id

    async def head(self, stream: str) -> Head:
        kept = self._tables.streams.get(stream)
        return Head() if kept is None else Head(kept.version, kept.epoch, kept.owner)

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        return {stream: await self.head(stream) for stream in streams}

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        check_text(owner)
        return (await self._batch()).acquire(stream, owner, seen_epoch)

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        check_form(writes, key)
        batch = await self._batch()
        appended = batch.append(writes, key)
        batch.finish()
        await self._snapshots.forget(emptied_streams(writes))
        self._bell.ring()
        return appended

    async def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        for event in self._events(stream, after, until)[:limit]:
            yield event

    async def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        for event in self._events(stream, NO_STREAM, until)[::-1][:limit]:
            yield event

    def _events(self, stream: str, after: int, until: int | None) -> list[RecordedEvent]:
        kept = self._tables.streams.get(stream)
        pieces = kept.line(until) if kept else ()
        return [
            event
            for part, last in pieces
            for event in part.events[max(after - part.base, 0) :]
            if last is None or event.version <= last
        ]

    async def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        count = 0
        for position in range(max(after, 0), len(self._tables.log)):
            if count == limit:
                return
            event = self._tables.log[position]
            if categories is None or category_of(event.stream) in categories:
                yield event
                count += 1

    async def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        while True:
            last = await self.last_position()
            async for event in self.read_all(after, categories):
                yield event
                last = max(last, event.position)
            after = max(after, last)
            self._check_open()
            if len(self._tables.log) <= after:
                await self._bell.wait()

    async def last_position(self) -> int:
        return len(self._tables.log)

    async def put_blob(self, content: bytes) -> str:
        if len(content) > BLOB_LIMIT:
            raise BlobTooLargeError(len(content), BLOB_LIMIT)
        await self._batch()
        blob = sha256(content).hexdigest()
        self._tables.blobs[blob] = (content, to_us(self._clock.now()))
        return blob

    async def get_blob(self, blob: str) -> bytes:
        if blob not in self._tables.blobs:
            raise MissingBlobError("the log", blob)
        return self._tables.blobs[blob][0]

    async def faults(self) -> list[CorruptEventError]:
        """See `EventStore.faults`; always empty, because no data is stored twice."""
        return []

    async def collect_blobs(self, now: datetime) -> int:
        """Delete blobs without references that are a day old; return their number."""
        await self._batch()
        rested = to_us(now - BLOB_REST)
        gone = [
            blob
            for blob, (_, put_us) in self._tables.blobs.items()
            if put_us <= rested and not self._tables.names(blob)
        ]
        for blob in gone:
            del self._tables.blobs[blob]
        return len(gone)

    async def close(self) -> None:
        self._closed = True
        self._bell.ring()

    async def _batch(self) -> Batch:
        # Other stores let the loop's tasks run before they answer; a fake without that would hide
        # races.
        await take_turns()
        self._check_open()
        return Batch(self._tables, to_us(self._clock.now()))

    def _check_open(self) -> None:
        if self._closed:
            raise LogUnavailableError("the log in memory", "it was closed")
