"""What the rules of a transaction read and write."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from cueline.events.store import GENESIS, NO_STREAM, RecordedEvent

EventRow = tuple[Any, ...]
"""The fields of a `RecordedEvent`, with its stream's id in place of the name."""


class StreamRow(Struct, eq=False):
    """A stream as this transaction sees it."""

    id: int
    """0: it is not there yet."""
    name: str
    version: int
    epoch: int
    hash: bytes


class LastEvent(NamedTuple):
    """The newest event that a stream itself has."""

    version: int
    position: int
    epoch: int
    hash: bytes


def head_fault(stream: StreamRow, last: LastEvent | None) -> str | None:
    """Say what of the row of a stream does not fit its *last* event; None when all does.

    The chain of hashes covers the events, and the next append believes this row.
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
    """Where the append that has a key is."""

    position: int
    length: int
    """How many events it has."""


class Tables(Protocol):
    """What a batch reads and writes, inside one transaction."""

    def last(self) -> tuple[int, int]:
        """Return the last event's position and when it was recorded; zeros without one."""
        ...

    def find(self, name: str) -> StreamRow | None:
        """Return the stream of that name."""
        ...

    def find_all(self, names: Collection[str]) -> Sequence[StreamRow]:
        """Return those of these streams that are there."""
        ...

    def last_event(self, stream: int) -> LastEvent | None:
        """Return the newest event of the stream itself, not of what it goes on from."""
        ...

    def create(self, name: str) -> int:
        """Make the stream's row and return its id."""
        ...

    def own(self, stream: int, epoch: int, owner: str) -> None:
        """Keep the stream's new epoch and owner."""
        ...

    def branch(self, stream: int, parent: int, version: int) -> None:
        """Keep what the stream goes on from."""
        ...

    def claim(self, stream: int, key: str, first: First) -> bool:
        """Keep the key of an append; False, and nothing kept, where it is there already."""
        ...

    def find_append(self, stream: int, key: str) -> First | None:
        """Return where the append of that key is."""
        ...

    def find_owned(self, stream: int, epoch: int, version: int) -> First | None:
        """Return where the append is that an owner's event of that version begins."""
        ...

    def events(self, first: First) -> Sequence[RecordedEvent]:
        """Return the events of an append."""
        ...

    def hash_at(self, stream: int, version: int) -> bytes:
        """Return the hash of an event of the stream or of what it goes on from."""
        ...

    def has_blob(self, blob: str) -> bool:
        """Tell whether the blob is there."""
        ...

    def empty(self, stream: int, version: int) -> None:
        """Empty the payload of an event, and delete the blobs that it alone names."""
        ...

    def write(
        self,
        events: Sequence[EventRow],
        blobs: Sequence[tuple[str, int]],
        moved: Collection[StreamRow],
    ) -> None:
        """Keep events, which blob each position names, and how far streams are."""
        ...
