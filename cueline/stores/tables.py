"""The port of the tables that a transaction reads and writes."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from cueline.events.store import GENESIS, NO_STREAM, RecordedEvent

EVENT_COLUMNS = """
    e.version, e.position, e.type, e.schema, e.payload, e.occurred_us, e.recorded_us, e.epoch,
    e.actor, e.attrs, e.correlation_id, e.causation_id, e.step, e.seq, e.salt, e.payload_hash,
    e.hash
"""
"""The columns in the order of `RecordedEvent`, after its stream."""

EventRow = tuple[Any, ...]
"""The fields of a `RecordedEvent`, with its stream's id in place of the name."""


class StreamRow(Struct, eq=False):
    """A stream as this transaction sees it."""

    id: int
    """The row's id; 0 if the stream does not exist yet."""
    name: str
    version: int
    epoch: int
    hash: bytes


class LastEvent(NamedTuple):
    """The newest event of a stream itself."""

    version: int
    position: int
    epoch: int
    hash: bytes


def head_fault(stream: StreamRow, last: LastEvent | None) -> str | None:
    """Return how the row of a stream contradicts its *last* event; None if they agree.

    The hash chain covers only the events, but the next append also relies on the row.
    """
    version, epoch, head = (NO_STREAM, 0, GENESIS) if last is None else (last[0], *last[2:])
    if stream.version != version:
        return f"its last event is {version}, {stream.version} were appended"
    if stream.hash != head:
        return "the head of its stream is not the hash of this event"
    if stream.epoch < epoch:
        return f"the epoch of its stream is {stream.epoch}, and this event's is {epoch}"
    return None


class First(NamedTuple):
    """The place of an append with a key."""

    position: int
    length: int
    """The number of events of the append."""


class Tables(Protocol):
    """The tables of a batch, inside one transaction."""

    def last(self) -> tuple[int, int]:
        """Return the position and time of the last event; zeros without one."""

    def find(self, name: str) -> StreamRow | None:
        """Return the stream *name*; None if it does not exist."""

    def find_all(self, names: Collection[str]) -> Sequence[StreamRow]:
        """Return the streams of *names* that exist."""

    def last_event(self, stream: int) -> LastEvent | None:
        """Return the newest event of the stream itself, not of its parent."""

    def create(self, name: str) -> int:
        """Create the stream's row and return its id."""

    def own(self, stream: int, epoch: int, owner: str) -> None:
        """Set the stream's epoch and owner."""

    def branch(self, stream: int, parent: int, version: int) -> None:
        """Set the parent of the stream, and the version of the parent at which it begins."""

    def claim(self, stream: int, key: str, first: First) -> bool:
        """Store the key of an append; return False if the key was stored before."""

    def find_append(self, stream: int, key: str) -> First | None:
        """Return the append with the *key*; None without one."""

    def find_owned(self, stream: int, epoch: int, version: int) -> First | None:
        """Return the append of the owner of *epoch* that begins at *version*; None without one."""

    def events(self, first: First) -> Sequence[RecordedEvent]:
        """Return the events of an append."""

    def hash_at(self, stream: int, version: int) -> bytes:
        """Return the hash of an event of the stream or of its parent."""

    def has_blob(self, blob: str) -> bool:
        """Whether the blob exists."""

    def empty(self, stream: int, version: int) -> None:
        """Redact the payload of an event, and delete the blobs that only it names."""

    def write(
        self,
        events: Sequence[EventRow],
        blobs: Sequence[tuple[str, int]],
        moved: Collection[StreamRow],
    ) -> None:
        """Write events, their blob references, and the heads of streams."""
