"""Snapshots of sessions, kept beside the log: what a fold came to at a version.

Nothing here is evidence. Whoever reads a snapshot checks it, and folds the log
from its beginning where there is any doubt: that takes longer, and comes to
the same. A snapshot holds content, so it is forgotten with the events that it
was folded from.
"""

from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Final, Protocol

from msgspec import MsgspecError, Struct, msgpack

from cueline.events.store import Write

EVERY: Final = 200
"""A session that has taken in more events than this since its last snapshot gets another."""
_DIGEST_BYTES = 32


class Snapshot(Struct, frozen=True, array_like=True):
    """The state of a session at a version, and how far its prompt was then."""

    log_id: str
    stream: str
    version: int
    hash: bytes
    """Of the event of that version, as it stands in the log."""
    folds: tuple[int, int]
    """The numbers of the folds of state and prompt."""
    prompt: bytes
    """The digest of all messages up to here: see `prompt_digest`."""
    state: bytes
    """What the folds came to, but for the messages."""


def sealed(snapshot: Snapshot) -> bytes:
    """Return *snapshot* with its checksum."""
    content = msgpack.encode(snapshot)
    return sha256(content).digest() + content


def unsealed(content: bytes) -> Snapshot | None:
    """Return the snapshot that was sealed; None where it is damaged, or of another form."""
    digest, content = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if sha256(content).digest() != digest:
        return None
    try:
        return msgpack.decode(content, type=Snapshot)
    except MsgspecError:
        return None


def prompt_digest(previous: bytes, chunk: bytes) -> bytes:
    """Return the digest of a prompt that goes on with *chunk*; of one without any it is empty."""
    return sha256(previous + chunk).digest()


class SnapshotStore(Protocol):
    """Keeps the snapshots of a log's sessions, and the chunks of their prompts.

    Each snapshot comes with the chunk of messages that its prompt took in since
    the one before it; no chunk is ever rewritten. Where something is damaged,
    locked or gone there is just nothing: only `forget` raises.
    """

    @property
    def every(self) -> int:
        """See `EVERY`."""
        ...

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:
        """Return the sealed snapshot of *stream* with the highest version, at most *until*."""
        ...

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:
        """Return the chunks of the prompt of *stream* up to version *until*, in order."""
        ...

    async def keep(
        self,
        stream: str,
        version: int,
        content: bytes,
        chunk: bytes,
        *,
        after: int,
        sources: Collection[str],
    ) -> None:
        """Keep a sealed snapshot that goes on from the one at *after*.

        Where that is 0 it is the first, and takes the place of all that were there; where the
        newest is another by now, nothing is kept. *sources* are the streams whose
        events it was folded from.
        """
        ...

    async def forget(self, streams: Collection[str]) -> None:
        """Delete every snapshot that was folded from events of *streams*: theirs, their forks'.

        Raises:
            LogUnavailableError: it cannot be done now; the message says what to mend.
        """
        ...


class NoSnapshots:
    """A place where none are kept."""

    every = EVERY

    async def newest(self, stream: str, until: int | None = None) -> bytes | None:  # noqa: ARG002 - as the port has it
        """See `SnapshotStore.newest`."""
        return None

    async def chunks(self, stream: str, until: int) -> Sequence[bytes]:  # noqa: ARG002 - likewise
        """See `SnapshotStore.chunks`."""
        return ()

    async def keep(  # noqa: D102 - likewise
        self,
        stream: str,
        version: int,
        content: bytes,
        chunk: bytes,
        *,
        after: int,
        sources: Collection[str],
    ) -> None:
        pass

    async def forget(self, streams: Collection[str]) -> None:
        """See `SnapshotStore.forget`."""


NO_SNAPSHOTS: Final = NoSnapshots()


def emptied_streams(writes: Sequence[Write]) -> set[str]:
    """Return the streams of which *writes* empty events: their snapshots have to go."""
    return {stream for write in writes for stream, _ in write.empties}
