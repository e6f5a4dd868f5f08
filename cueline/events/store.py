"""The log's port: what every backend promises.

Rule 1. An append is atomic over all its writes, which may be to several
streams, and durable when it returns. It checks, in one transaction and in this
order: key, epoch, expected version, blobs named.

Rule 2. The same key with the same content returns the first result, also after
a takeover; with another content it is an error. Keys are unique within the
first stream that an append names. An owner gives none: its epoch and the
version that it knows say which append it is, for no other can have that place.

Rule 3. A stream that was acquired takes appends of its owner's epoch only
(I3). One that never was takes `None` as epoch, and `ANY` or a version.

Rule 4. Positions are dense and in commit order; a gap is a bug. `recorded_us`
never goes back.

Rule 5. A losing append never takes its neighbours down. An error during the
commit is an `UnknownOutcomeError`: ask again with the same key.

Theory of operation: the store keeps opaque bytes. What they mean is the
codec's business (`events.codec`), who may write is the epoch's, what may
happen is the decider's.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from msgspec import Struct

from cueline.errors import CorruptEventError

NO_STREAM = 0
"""The version of a stream that has no events."""
ANY = -1
"""As expected version: whatever it is. Only on streams that are never acquired."""
GENESIS = bytes(32)
"""The hash before a stream's first event."""
INLINE_LIMIT = 16 * 1024
"""Longer values go to a blob, in bytes."""
BLOB_LIMIT = 100 * 1024 * 1024
"""Longer values are refused, in bytes."""

NO_TIME = "it was recorded at no time that a calendar holds"
"""Why an event cannot be read whose time is damaged."""

_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(moment: datetime) -> int:
    """Return *moment* in microseconds since 1970, UTC."""
    return (moment - _EPOCH_START) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """Return the moment that is *microseconds* after the start of 1970, UTC."""
    return _EPOCH_START + timedelta(microseconds=microseconds)


_END_US = to_us(datetime(9999, 12, 31, tzinfo=UTC))  # a day short: a local time may be ahead


def is_time(recorded_us: int) -> bool:
    """Whether a log can have taken an event then; else its row was damaged."""
    return 0 <= recorded_us < _END_US


class Draft(Struct, frozen=True):
    """An event on its way into the log, in bytes."""

    type: str
    schema: int
    payload: bytes
    occurred_us: int
    """The producer's clock, in microseconds since 1970, UTC."""
    actor: str
    """Who: `user`, `agent`, `runner` or `system`, perhaps with `:name`."""
    attrs: str | None = None
    """A few small facets for audit, as a JSON object; never personal data."""
    correlation_id: str | None = None
    causation_id: str | None = None
    step: int = 0
    """Which step of its append it belongs to (I10), from 0."""
    blobs: tuple[str, ...] = ()
    """The blobs that the payload names; they have to be there."""


class RecordedEvent(NamedTuple):
    """An event the store has accepted, and will never change."""

    stream: str
    version: int
    """Place in its stream, counted from 1; a fork counts on from its parent's."""
    position: int
    """Place in the whole log, dense and in commit order."""
    type: str
    schema: int
    payload: bytes | None
    """None once it was emptied."""
    occurred_us: int
    recorded_us: int
    """The log's clock, in microseconds since 1970, UTC; it never goes back."""
    epoch: int
    actor: str
    attrs: str | None
    correlation_id: str | None
    causation_id: str | None
    step: int
    seq: int
    """Place in its append, from 0."""
    salt: bytes | None
    payload_hash: bytes
    hash: bytes

    @property
    def recorded_at(self) -> datetime:
        """When the log took it."""
        return from_us(self.recorded_us)

    @property
    def occurred_at(self) -> datetime:
        """When its producer says it happened."""
        return from_us(self.occurred_us)


class Write(Struct, frozen=True):
    """Events for one stream, and what their writer believes of it."""

    stream: str
    events: Sequence[Draft]
    expected_version: int
    epoch: int | None = None
    after: tuple[str, int] | None = None
    """On a stream's first append: the stream and version that it forks from."""
    empties: Sequence[tuple[str, int]] = ()
    """Events, by stream and version, whose payloads go with this append: it says what they said.

    A blob that only they name goes, too.
    """


class Appended(Struct, frozen=True):
    """Where an append ended up."""

    versions: tuple[int, ...]
    """The last version of each write, in their order."""
    position: int
    """Of its last event."""
    recorded_us: int


@dataclass(frozen=True, slots=True)
class Head:
    """How far a stream is, and whose it is."""

    version: int = NO_STREAM
    epoch: int = 0
    """0: it was never acquired."""
    owner: str | None = None
    """The incarnation that acquired it last."""


class EventStore(Protocol):
    """An append-only log of many streams."""

    @property
    def log_id(self) -> str:
        """The log's own id, made with it, which no other has; it stays where the log is moved."""
        ...

    async def head(self, stream: str) -> Head:
        """Return how far *stream* is; `Head()` where there is none."""
        ...

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        """Return the heads of *streams* in one query, `Head()` for one that does not exist."""
        ...

    async def acquire(self, stream: str, owner: str, seen_epoch: int) -> int:
        """Become the owner of *stream* and return the new epoch.

        Raises:
            FencedError: the epoch is not *seen_epoch* any more; look again.
            CorruptEventError: what the log keeps of the stream does not fit its last event.
            UnknownOutcomeError: look at the head, which says whose the stream is.
            LogUnavailableError: it did not take place; mend the disk, ask again.
            LogLostError: the log is not where it was any more; stop.
        """
        ...

    async def append(self, writes: Sequence[Write], key: str | None) -> Appended:
        """Append all *writes*, or none; durable when it returns.

        *key* is None where the first write is its stream's owner's.

        Raises:
            EmptyAppendError: there is no event in one of them.
            InvalidNameError: there is no key, and no epoch in the first write; a bug.
            KeyReusedError: *key* stands for another content in the first stream.
            FencedError: the epoch is not the owner's; stop.
            WrongExpectedVersionError: the stream moved on; reload, decide again.
            MissingBlobError: a blob is not there; put it, then ask again.
            CorruptEventError: the log's last event is damaged; restore.
            UnknownOutcomeError: it may have taken place; ask again, same key.
            LogUnavailableError: it did not take place; mend the disk, ask again.
            LogLostError: the log is not where it was any more; stop.
        """
        ...

    def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        """Read a stream's events with versions above *after*, up to *until*, at most *limit*.

        A fork's events begin with its parent's.
        """
        ...

    def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        """Read a stream's events up to version *until*, the newest first, at most *limit*.

        Whoever stops early has read no more than a page too much.
        """
        ...

    def read_all(
        self,
        after: int = 0,
        categories: Collection[str] | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        """Read the log's events at positions above *after*, in order, and end."""
        ...

    def follow(
        self, after: int, categories: Collection[str] | None = None
    ) -> AsyncIterator[RecordedEvent]:
        """Read the log's events at positions above *after*, and go on for ever."""
        ...

    async def last_position(self) -> int:
        """Return the position of the last event; 0 for an empty log."""
        ...

    async def put_blob(self, content: bytes) -> str:
        """Keep *content*, durably, and return its sha256 in hex. Putting again renews its time.

        Raises:
            BlobTooLargeError: it is over `BLOB_LIMIT`.
        """
        ...

    async def get_blob(self, blob: str) -> bytes:
        """Return the content of *blob*.

        Raises:
            MissingBlobError: there is none of that hash.
        """
        ...

    async def faults(self) -> Sequence[CorruptEventError]:
        """Return where heads, epochs and keys do not fit the events, as of one moment.

        Raises:
            LogUnavailableError: they cannot be read.
        """
        ...

    async def close(self) -> None:
        """Finish what is queued, and let go of the file."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """The volatile sign that a process lives; never evidence."""

    incarnation: str
    role: str
    """`host`, `runner`, `dispatcher` or `inline`; `up` or `cli` of one that never beats."""
    machine: str
    boot_id: str
    pid: int
    process_started: int
    """As the kernel counts it, so that a pid used again is another process."""
    pid_namespace: str = ""
    beat_us: int = 0
    """When it beat last, in microseconds since 1970, UTC."""


class PresenceBoard(Protocol):
    """Where processes say that they live; kept outside the log."""

    async def beat(self, presence: Presence) -> None:
        """Say that *presence* lives now; its `beat_us` is set by the board."""
        ...

    async def leave(self, incarnation: str) -> None:
        """Say that *incarnation* has ended."""
        ...

    async def all(self) -> Sequence[Presence]:
        """Return everybody who beat and did not leave, dead or alive."""
        ...

    async def close(self) -> None:
        """Let go of what it is kept in."""
        ...
