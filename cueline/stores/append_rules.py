"""The rules of one write transaction, for every kind of tables.

A batch holds the read rows of one transaction, and the rows that it will write. It checks
each append against the current streams, extends the hash chain, and collects the rows to
write at the end. A refused append changes nothing, so the other appends succeed.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from os import urandom

from msgspec.structs import astuple

from cueline.errors import (
    BlobTooLargeError,
    CorruptEventError,
    EmptyAppendError,
    FencedError,
    InvalidNameError,
    KeyReusedError,
    MissingBlobError,
    StoreError,
    WrongExpectedVersionError,
)
from cueline.events.chain import SALT_BYTES, hash_payload, link
from cueline.events.store import (
    ANY,
    BLOB_LIMIT,
    GENESIS,
    NO_STREAM,
    NO_TIME,
    Appended,
    Draft,
    RecordedEvent,
    Write,
    is_time,
)
from cueline.events.stream import check_stream
from cueline.stores.tables import EventRow, First, StreamRow, Tables, head_fault

BLOB_REST = timedelta(hours=24)
"""A blob without references is kept this long after it was stored."""
_ROW_BYTES = 200
"""The approximate size of an event without its payload."""


def check_form(writes: Sequence[Write], key: str | None) -> int:
    """Check an append before it is queued; return its approximate size in bytes.

    Raises:
        EmptyAppendError: a write has no event.
        BlobTooLargeError: a payload is over `BLOB_LIMIT`; store it as a blob.
        InvalidNameError: a text is not valid UTF-8; sanitize it. Or there is neither key
            nor owner.
    """
    if not writes:
        raise EmptyAppendError("an append")
    if key is not None:
        check_text(key)
    elif not writes[0].epoch:
        raise InvalidNameError("None", "only an owner appends without a key")
    size = 0
    for write in writes:
        if not write.events:
            raise EmptyAppendError(write.stream)
        for draft in write.events:
            length = len(draft.payload)
            if length > BLOB_LIMIT:
                raise BlobTooLargeError(length, BLOB_LIMIT)
            size += length + _ROW_BYTES
            said = f"{draft.type}{draft.actor}{draft.attrs}"
            if not f"{said}{draft.correlation_id}{draft.causation_id}".isascii():
                check_text(said, draft.correlation_id, draft.causation_id)
    return size


def check_text(*texts: str | None) -> None:
    """Raise for text that the chain and the file cannot hold.

    Raises:
        InvalidNameError: a text has lone surrogates; sanitize it.
    """
    for text in texts:
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise InvalidNameError(repr(text)[:80], "it cannot be written as UTF-8") from None


class Batch:
    """One transaction: the read rows, and the rows to write."""

    def __init__(self, tables: Tables, now_us: int) -> None:
        self.tables = tables
        self._streams: dict[str, StreamRow] = {}
        self._position, recorded_us = tables.last()
        if not is_time(recorded_us):
            # A wrong clock now would put all later events at this time or after it.
            raise CorruptEventError("?", 0, self._position, NO_TIME)
        # The log's time never decreases, even if the machine's does (I14).
        self._recorded_us = max(now_us, recorded_us)
        self._events: list[EventRow] = []
        self._blobs: list[tuple[str, int]] = []
        self._moved: set[StreamRow] = set()

    def look_up(self, names: Collection[str]) -> None:
        """Read these streams in one query, which is faster than one by one."""
        self._streams = {stream.name: stream for stream in self.tables.find_all(names)}

    def acquire(self, name: str, owner: str, seen_epoch: int) -> int:
        stream = self._stream(name)
        if stream.epoch != seen_epoch:
            raise FencedError(name, seen_epoch, stream.epoch)
        self._ensure(stream)
        self._check_head(stream)
        stream.epoch += 1
        self.tables.own(stream.id, stream.epoch, owner)
        return stream.epoch

    def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        streams = [self._stream(write.stream) for write in writes]
        try:
            self._check(writes, streams)
        except StoreError:
            # The key comes before epoch and version: a repeat after a takeover gets the first
            # result. It is looked up only here and where claiming it fails, which saves a query for
            # each append.
            first = self._find(writes[0], streams[0], key)
            if first is None:
                raise
            return self._again(writes, key, first)
        if key is not None and not self._claim(writes, streams[0], key):
            first = self.tables.find_append(streams[0].id, key)
            assert first is not None
            return self._again(writes, key, first)
        return self._take(writes, streams)

    def finish(self) -> None:
        """Write the remaining rows; then the transaction can commit."""
        if self._events:
            self.tables.write(self._events, self._blobs, self._moved)
            self._events, self._blobs, self._moved = [], [], set()

    def _stream(self, name: str) -> StreamRow:
        stream = self._streams.get(name)
        if stream is None:
            stream = self.tables.find(name)
            if stream is None:
                check_stream(name)
                stream = StreamRow(0, name, NO_STREAM, 0, GENESIS)
            self._streams[name] = stream
        return stream

    def _check_head(self, stream: StreamRow) -> None:
        self.finish()  # the last event of the stream may be waiting in this batch
        last = self.tables.last_event(stream.id)
        if (fault := head_fault(stream, last)) is not None:
            version, position = (stream.version, 0) if last is None else last[:2]
            raise CorruptEventError(stream.name, version, position, fault)

    def _ensure(self, stream: StreamRow) -> None:
        if not stream.id:
            stream.id = self.tables.create(stream.name)

    def _claim(self, writes: Sequence[Write], stream: StreamRow, key: str) -> bool:
        self._ensure(stream)
        first = First(self._position + 1, sum([len(write.events) for write in writes]))
        return self.tables.claim(stream.id, key, first)

    def _find(self, write: Write, stream: StreamRow, key: str | None) -> First | None:
        """Return the earlier append with this key, or at this owner's version; None without one."""
        if key is not None:
            return self.tables.find_append(stream.id, key)
        assert write.epoch is not None
        self.finish()  # the earlier append may be waiting in this batch
        return self.tables.find_owned(stream.id, write.epoch, write.expected_version + 1)

    def _check(self, writes: Sequence[Write], streams: Sequence[StreamRow]) -> None:
        for write, stream in zip(writes, streams, strict=True):
            _check_epoch(write, stream)
        versions: dict[str, int] = {}
        for write, stream in zip(writes, streams, strict=True):
            version = versions.get(write.stream)
            if version is None:
                version = self._base(write, stream)
            if write.expected_version not in (version, ANY):
                raise WrongExpectedVersionError(write.stream, write.expected_version, version)
            versions[write.stream] = version + len(write.events)
        for write in writes:
            for draft in write.events:
                for blob in draft.blobs:
                    if not self.tables.has_blob(blob):
                        raise MissingBlobError(write.stream, blob)

    def _base(self, write: Write, stream: StreamRow) -> int:
        """Return the version of the stream before *write*."""
        if write.after is None:
            return stream.version
        if stream.version != NO_STREAM:
            raise WrongExpectedVersionError(write.stream, NO_STREAM, stream.version)
        name, version = write.after
        parent = self._stream(name)
        if not 1 <= version <= parent.version:
            raise WrongExpectedVersionError(name, version, parent.version)
        return version

    def _take(self, writes: Sequence[Write], streams: Sequence[StreamRow]) -> Appended:
        versions = []
        seq = 0
        for write, stream in zip(writes, streams, strict=True):
            self._ensure(stream)
            if write.after is not None and stream.version == NO_STREAM:
                self._branch(stream, *write.after)
            for draft in write.events:
                self._record(stream, draft, seq)
                seq += 1
            self._moved.add(stream)
            versions.append(stream.version)
            if write.empties:
                self._empty(write.empties)
        return Appended(tuple(versions), self._position, self._recorded_us)

    def _empty(self, events: Sequence[tuple[str, int]]) -> None:
        self.finish()  # the events, and other references to their blobs, may be waiting here
        for name, version in events:
            self.tables.empty(self._stream(name).id, version)

    def _branch(self, stream: StreamRow, name: str, version: int) -> None:
        parent = self._stream(name)
        if version == parent.version:
            stream.hash = parent.hash
        else:
            self.finish()  # the parent's event may be waiting in this batch
            stream.hash = self.tables.hash_at(parent.id, version)
        stream.version = version
        self.tables.branch(stream.id, parent.id, version)

    def _record(self, stream: StreamRow, draft: Draft, seq: int) -> None:
        type_, schema, payload, occurred_us, *said, blobs = astuple(draft)
        salt = urandom(SALT_BYTES)
        payload_hash = hash_payload(salt, payload)
        stream.version = version = stream.version + 1
        self._position = position = self._position + 1
        about = (occurred_us, self._recorded_us, stream.epoch, *said, seq)
        stream.hash = link(stream.hash, payload_hash, stream.name, version, type_, schema, *about)
        place = (stream.id, version, position)
        # A tuple of these is made at twice the speed of a `RecordedEvent`.
        self._events.append(
            (*place, type_, schema, payload, *about, salt, payload_hash, stream.hash)
        )
        if blobs:
            self._blobs.extend([(blob, position) for blob in set(blobs)])

    def _again(self, writes: Sequence[Write], key: str | None, first: First) -> Appended:
        """Return the result of the *first* append with the key; raise if its events differ."""
        self.finish()  # the first append may be waiting in this batch
        drafts = [(write.stream, draft) for write in writes for draft in write.events]
        events = self.tables.events(first)
        if len(events) != len(drafts) or not all(map(_is_same, events, drafts)):
            place = f"{writes[0].epoch}.{writes[0].expected_version}"
            raise KeyReusedError(writes[0].stream, place if key is None else key)
        versions, end = [], 0
        for write in writes:
            end += len(write.events)
            versions.append(events[end - 1].version)
        return Appended(tuple(versions), events[-1].position, events[-1].recorded_us)


def _check_epoch(write: Write, stream: StreamRow) -> None:
    # I3: a stream that was never acquired takes appends without an epoch; an acquired stream takes
    # only appends with its owner's epoch. An owner's append has an expected version.
    if stream.epoch == 0:
        allowed = write.epoch is None
    else:
        allowed = write.epoch == stream.epoch and write.expected_version != ANY
    if not allowed:
        raise FencedError(write.stream, write.epoch, stream.epoch)


def _is_same(event: RecordedEvent, asked: tuple[str, Draft]) -> bool:
    stream, draft = asked
    recorded = (event.stream, event.type, event.schema)
    # Redacted content cannot be compared any more, and counts as equal.
    same = event.payload in (None, draft.payload)
    return same and recorded == (stream, draft.type, draft.schema)
