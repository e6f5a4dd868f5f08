"""The interface of a log's storage, and the five rules that every backend keeps.

Rule 1. An append is atomic over all its writes, which may be to several streams, and
durable when it returns. In one transaction it checks, in this order: key, epoch,
expected version, named blobs.

Rule 2. The same key with the same content returns the first result, also after a
takeover; with other content it is an error. Keys are unique within the first stream
of an append. An owner gives no key: its epoch and expected version identify the
append, because no other append can have that version.

Rule 3. An acquired stream accepts only appends with its owner's epoch (I3).
A stream that was never acquired accepts `None` as epoch, and `ANY` or a version.

Rule 4. Positions are dense and in commit order; a gap is a bug. `recorded_us` never
decreases.

Rule 5. A failed append does not affect others. An error during the commit is an
`UnknownOutcomeError`: repeat the append with the same key.

Theory of operation: the store holds opaque bytes, which the codec (`events.codec`) encodes
and decodes. The epoch decides which process may write; the decider, which events follow.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from cueline.errors import CorruptEventError

NO_STREAM = 0
"""The version of a stream that has no events."""
ANY = -1
"""The expected version "any", only for streams that are never acquired."""
GENESIS = bytes(32)
"""The hash before a stream's first event."""
INLINE_LIMIT = 16 * 1024
"""The size in bytes above which a value is stored as a blob."""
BLOB_LIMIT = 100 * 1024 * 1024
"""The size of the largest blob in bytes; larger values are refused."""

NO_TIME = "it was recorded at no time that a calendar holds"
"""The text of the error for an event with an impossible time."""

_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Return the microseconds from the start of 1970, UTC, to *moment*."""
    return (moment - _EPOCH_START) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """Return the time *microseconds* after the start of 1970, UTC."""
    return _EPOCH_START + timedelta(microseconds=microseconds)


_END_US = to_us(datetime(9999, 12, 31, tzinfo=UTC))  # a day short: a local time may be ahead


def is_time(recorded_us: int) -> bool:
    """Whether *recorded_us* is a possible time of an event; otherwise the row is damaged."""
    return 0 <= recorded_us < _END_US


class Draft(Struct, frozen=True):
    """An encoded event before it is appended."""

    type: str
    schema: int
    payload: bytes
    occurred_us: int
    """The producer's clock, in microseconds since 1970, UTC."""
    actor: str
    """The actor: `user`, `agent`, `runner` or `system`, perhaps with `:name`."""
    attrs: str | None = None
    """A few small fields for audit, as a JSON object; never personal data."""
    correlation_id: str | None = None
    causation_id: str | None = None
    step: int = 0
    """The number of the event's step in its append (I10), from 0."""
    blobs: tuple[str, ...] = ()
    """The blobs that the payload names, which have to exist."""


class RecordedEvent(NamedTuple):
    """An event in the log; it never changes."""

    stream: str
    version: int
    """The place of the event in its stream, from 1; a fork continues its parent's count."""
    position: int
    """The place of the event in the whole log, dense and in commit order."""
    type: str
    schema: int
    payload: bytes | None
    """The payload; None after it was redacted."""
    occurred_us: int
    recorded_us: int
    """The log's clock, in microseconds since 1970, UTC; it never decreases."""
    epoch: int
    actor: str
    attrs: str | None
    correlation_id: str | None
    causation_id: str | None
    step: int
    seq: int
    """The place of the event in its append, from 0."""
    salt: bytes | None
    payload_hash: bytes
    hash: bytes

    @property
    def recorded_at(self) -> datetime:
        """The time at which the log recorded the event."""
        return from_us(self.recorded_us)

    @property
    def occurred_at(self) -> datetime:
        """The time at which the event happened, by its producer's clock."""
        return from_us(self.occurred_us)


class Write(Struct, frozen=True):
    """Events for one stream, with the expected version and epoch."""

    stream: str
    events: Sequence[Draft]
    expected_version: int
    epoch: int | None = None
    after: tuple[str, int] | None = None
    """On a stream's first append: the stream and version that it forks from."""
    empties: Sequence[tuple[str, int]] = ()
    """Events, by stream and version, whose payloads this append redacts and replaces.

    Blobs that only these events name are deleted, too.
    """


class Appended(Struct, frozen=True):
    """The result of an append."""

    versions: tuple[int, ...]
    """The last version of each write, in their order."""
    position: int
    """The position of the append's last event."""
    recorded_us: int


@dataclass(frozen=True, slots=True)
class Head:
    """A stream's version and owner."""

    version: int = NO_STREAM
    epoch: int = 0
    """The epoch of the owner; 0: the stream was never acquired."""
    owner: str | None = None
    """The incarnation that acquired the stream last."""


class EventStore(Protocol):
    """An append-only log of many streams."""

    @property
    def log_id(self) -> str:
        """The log's unique id; it stays the same when the log is moved."""

    async def head(self, stream: str) -> Head:
        """Return the head of *stream*; `Head()` if it does not exist."""

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        """Return the heads of *streams* in one query; `Head()` for a stream that does not exist."""

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        """Become the owner of *stream* and return the new epoch.

        Raises:
            FencedError: the epoch is no longer *seen_epoch*; read it again.
            CorruptEventError: the stored head does not fit the stream's last event.
            UnknownOutcomeError: read the head, which names the owner.
            LogUnavailableError: nothing was changed; check the disk, try again.
            LogLostError: the log was removed or replaced; stop.
        """

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        """Append all *writes*, or none; durable when it returns.

        *key* is None if the first write is by its stream's owner.

        Raises:
            EmptyAppendError: a write has no event.
            InvalidNameError: there is no key, and no epoch in the first write; a bug.
            KeyReusedError: *key* was used with other content in the first stream.
            FencedError: the epoch is not the owner's; stop.
            WrongExpectedVersionError: the stream has new events; read them, decide again.
            MissingBlobError: a blob does not exist; put it, then repeat.
            CorruptEventError: the log's last event is damaged; restore the log.
            UnknownOutcomeError: the append may have succeeded; repeat it with the same key.
            LogUnavailableError: nothing was appended; check the disk, repeat.
            LogLostError: the log was removed or replaced; stop.
        """

    def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        """Read a stream's events with versions above *after*, up to *until*, at most *limit*.

        The events of a fork begin with its parent's events.
        """

    def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        """Read a stream's events up to version *until*, newest first, at most *limit*.

        A reader that stops early has read at most one page too much.
        """

    def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        """Read the log's events at positions above *after*, in order, and end."""

    def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        """Read the log's events at positions above *after*, then wait for new ones, without end."""

    async def last_position(self) -> int:
        """Return the position of the last event; 0 for an empty log."""

    async def put_blob(self, content: bytes) -> str:
        """Store *content* durably and return its sha256 in hex; a repeat renews its time.

        Raises:
            BlobTooLargeError: *content* is larger than `BLOB_LIMIT`.
        """

    async def get_blob(self, blob: str) -> bytes:
        """Return the content of *blob*.

        Raises:
            MissingBlobError: no blob has that hash.
        """

    async def faults(self) -> Sequence[CorruptEventError]:
        """Return each contradiction between heads, epochs or keys and the events, at one moment.

        Raises:
            LogUnavailableError: they cannot be read.
        """

    async def close(self) -> None:
        """Finish queued writes, and close the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """The volatile sign that a process is alive; never evidence."""

    incarnation: str
    role: str
    """`host`, `runner`, `dispatcher` or `inline`; `up` or `cli` sends no heartbeats."""
    machine: str
    boot_id: str
    pid: int
    process_started: int
    """The start time by the kernel's count, so that a reused pid is another process."""
    pid_namespace: str = ""
    beat_us: int = 0
    """The last heartbeat, in microseconds since 1970, UTC."""
    address: str = ""
    """The address of the process's live text, as `HOST:PORT`; empty: none."""
    token: str = field(default="", repr=False)
    """The token that a watcher has to send to the live text's address."""


@runtime_checkable
class BlobCollector(Protocol):
    """A store that deletes the blobs that no event names."""

    async def collect_blobs(self, now: datetime) -> int:
        """Delete blobs without references that were stored a day before *now*; return their number.

        A younger one may be about to be named: a blob is stored before its event.
        """


class PresenceBoard(Protocol):
    """The board on which processes register and send heartbeats; stored outside the log."""

    async def beat(self, presence: Presence) -> None:
        """Record a heartbeat of *presence*; the board sets its `beat_us`."""

    async def leave(self, incarnation: str) -> None:
        """Record that *incarnation* has ended."""

    async def all(self) -> Sequence[Presence]:
        """Return every process that has registered and not left, dead or alive."""

    async def close(self) -> None:
        """Close the board."""
