"""Snapshots of sessions, stored beside the log: the result of a fold at a version.

A snapshot is no evidence. Readers check it, and on any doubt fold the log from its
beginning, which takes longer and gives the same result. A snapshot holds content,
so it is deleted with the events that it was folded from.
"""

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol

from msgspec import MsgspecError, Struct, msgpack

from cueline.events.store import Write

EVERY: Final = 200
"""The number of events between two snapshots of a session."""
_DIGEST_BYTES = 32


class Snapshot(Struct, frozen=True, array_like=True):
    """The state of a session at a version, and the size of its prompt then."""

    log_id: str
    stream: str
    version: int
    hash: bytes
    """The hash of the log's event at that version."""
    folds: tuple[int, int]
    """The version numbers of the code that folds the state and the prompt."""
    prompt: bytes
    """The digest of all messages up to *version*: see `prompt_digest`."""
    state: bytes
    """The folded state and prompt, without the messages."""


def sealed(snapshot: Snapshot) -> bytes:
    """Return *snapshot* as bytes with a checksum."""
    content = msgpack.encode(snapshot)
    return sha256(content).digest() + content


def is_intact(content: bytes) -> bool:
    """Whether *content* is as it was sealed."""
    return sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]


def unsealed(content: bytes) -> Snapshot | None:
    """Return the snapshot in *content*; None if it is damaged or has another format."""
    if not is_intact(content):
        return None
    try:
        return msgpack.decode(content[_DIGEST_BYTES:], type=Snapshot)
    except MsgspecError:
        return None


def prompt_digest(previous: bytes, chunk: bytes) -> bytes:
    """Return the digest of a prompt extended by *chunk*; empty for an empty prompt."""
    return sha256(previous + chunk).digest()


class SnapshotRow(NamedTuple):
    """The stored form of a snapshot."""

    version: int
    content: bytes
    """The snapshot, sealed."""
    chunk: bytes
    """The new messages of the prompt since the previous snapshot."""
    after: int
    """The version of the previous snapshot, which this row continues; 0: this row replaces all."""
    sources: Collection[str]
    """The streams whose events the snapshot was folded from."""


class SnapshotStore(Protocol):
    """Stores the snapshots of a log's sessions, and the chunks of their prompts.

    No chunk is rewritten. If data is damaged, locked or missing, methods return nothing;
    only `forget` raises.
    """

    @property
    def every(self) -> int:
        """The number of events between two snapshots: see `EVERY`."""

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        """Return the sealed snapshot of *stream* with the highest version, at most *until*."""

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        """Return the chunks of the prompt of *stream* up to version *until*, in order."""

    async def keep(self, stream: str, row: SnapshotRow) -> None:
        """Store the snapshot *row*, if it continues the newest snapshot or replaces all."""

    async def forget(self, streams: Collection[str]) -> None:
        """Delete all snapshots folded from events of *streams*, also those of forks.

        Raises:
            LogUnavailableError: they cannot be deleted now; the message says what to do.
        """


class NoSnapshots:
    """Stores no snapshots."""

    every = EVERY

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:  # noqa: ARG002 - as the port has it
        return None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:  # noqa: ARG002 - as the port has it
        return ()

    async def keep(self, stream: str, row: SnapshotRow) -> None:
        pass

    async def forget(self, streams: Collection[str]) -> None:
        """Do nothing; see `SnapshotStore.forget`."""


NO_SNAPSHOTS: Final = NoSnapshots()


def emptied_streams(writes: Sequence[Write]) -> set[str]:
    """Return the streams in which *writes* redact events; their snapshots have to be deleted."""
    return {stream for write in writes for stream, _ in write.empties}
