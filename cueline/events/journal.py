"""Reads and appends the facts of a log, which the store holds as bytes.

Reading a stream checks its hash chain. Reading across streams does not, and yields
`Unreadable` for an unreadable event, so a stream that needs a newer cueline does not
stop the reader of other streams.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec import Struct

from cueline.errors import CorruptEventError, MissingBlobError, UnknownEventTypeError
from cueline.events.blob_ref import blobs_in
from cueline.events.chain import Chain
from cueline.events.codec import Codec, Redacted
from cueline.events.fact import Fact
from cueline.events.inbox import StartAsked
from cueline.events.snapshot import NO_SNAPSHOTS, SnapshotStore
from cueline.events.store import NO_STREAM, Appended, EventStore, RecordedEvent, Write, to_us
from cueline.events.stream import session_of, shown, sibling

_KEPT = 1_000
"""The most streams whose correlation ids a journal keeps."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An event that this cueline cannot read."""

    type: str
    error: CorruptEventError | UnknownEventTypeError


class FactWrite(Struct, frozen=True):
    """Facts for one stream, with the expected version and epoch."""

    stream: str
    steps: Sequence[Sequence[Fact]]
    """The steps of the write: each is one outside fact and the events derived from it (I10)."""
    expected_version: int
    epoch: int | None = None
    after: tuple[str, int] | None = None
    """On a stream's first append: the stream and version that it forks from."""
    actor: str | Callable[[Fact], str] = "agent"
    """The actor, as `user` or `user:name`, or a function that returns a fact's actor."""
    correlation_id: str | None = None
    """The topmost session of the tree, as users name it; None: the journal looks for it."""
    causation_id: str | None = None
    empties: Sequence[tuple[str, int]] = ()
    """The events that this append redacts; see `Write.empties`."""


class Journal:
    """Appends facts to a log, and reads them from it."""

    def __init__(
        self,
        store: EventStore,
        codec: Codec,
        now: Callable[[], datetime],
        snapshots: SnapshotStore = NO_SNAPSHOTS,
    ) -> None:
        self.store = store
        """The store, for reading heads, owners and positions."""
        self.snapshots = snapshots
        """The snapshots of the log's sessions."""
        self.redactor = codec.redactor
        """The redactor of the secrets that the journal refuses to write."""
        self._codec = codec
        self._now = now
        self._correlations: dict[str, str | None] = {}
        """The correlation ids, by stream."""

    async def append(self, writes: Sequence[FactWrite], key: str | None) -> Appended:
        """Store the blobs that *writes* name, then append them all, or none.

        Raises:
            SecretLeakError: a fact was not sanitized; a bug, and nothing was written.
            BlobTooLargeError: a value is over the limit; shorten it.
            StoreError: see `EventStore.append`.
        """
        for write in writes:
            if write.correlation_id is None and write.stream not in self._correlations:
                await self._find_correlations(writes)
                break
        occurred_us = to_us(self._now())
        blobs: dict[str, bytes] = {}
        prepared = [self._prepare(write, occurred_us, blobs) for write in writes]
        for content in blobs.values():
            await self.store.put_blob(content)
        return await self.store.append(prepared, key)

    async def put_blob(self, content: bytes) -> str:
        """Store the blob *content* and return its hash; see `EventStore.put_blob`.

        Raises:
            SecretLeakError: the content has a secret; a bug, and nothing was written.
        """
        self._codec.check_blob(content)
        return await self.store.put_blob(content)

    async def get_blob(self, recorded: RecordedEvent, blob: str) -> bytes:
        """Return the long value *blob*, which *recorded* names.

        Raises:
            CorruptEventError: the blob is missing; restore the log.
        """
        try:
            return await self.store.get_blob(blob)
        except MissingBlobError:
            reason = f"the long value {blob} is missing, or not what was put"
            place = recorded.stream, recorded.version, recorded.position
            raise CorruptEventError(*place, reason) from None

    async def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        heard: Sequence[RecordedEvent] = (),
    ) -> AsyncIterator[tuple[RecordedEvent, Fact | Redacted]]:
        """Read a stream as `EventStore.read` does, and check each event against its predecessor.

        Events in *heard* are not read again, if *heard* has the stream's newest events without
        a gap after *after*; then *until* is not given.

        Raises:
            CorruptEventError: restore the log; everything read before is valid.
            UnknownEventTypeError: upgrade cueline.
        """
        # Version `after` is read too: the chain continues from its hash.
        chain = None if after else Chain()
        decode = self._codec.decode
        begin = max(after - 1, NO_STREAM)
        if heard and heard[0].version <= begin + 1:
            events = _listed(heard[begin + 1 - heard[0].version :])
        elif heard and heard[-1].version <= after:
            return
        else:
            events = self.store.read(stream, begin, until)
        async for recorded in events:
            if chain is None:
                chain = Chain(recorded.version, recorded.hash)
                continue
            chain.check(recorded)
            try:
                fact = decode(recorded)
            except MissingBlobError:
                # Few events name a blob: checking each first would slow down every replay.
                fact = decode(recorded, await self._blobs_of(recorded))
            yield recorded, fact

    async def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[tuple[RecordedEvent, Fact | Redacted | Unreadable]]:
        """Read the log's facts after a position; see `EventStore.read_all`."""
        async for recorded in self.store.read_all(after, categories, limit):
            yield recorded, await self.fact_of(recorded)

    async def _find_correlations(self, writes: Sequence[FactWrite]) -> None:
        """Learn the correlation ids of *writes*: the topmost session of each session's tree.

        The start request names that session; later events have the correlation id of the request.
        """
        known = self._correlations
        if len(known) > _KEPT:
            known.clear()
        for write in writes:
            if write.correlation_id or write.stream in known:
                continue
            session = session_of(write.stream)
            if session is None:
                known[write.stream] = None
                continue
            inbox = sibling(session, "inbox")
            if isinstance(asked := write.steps[0][0], StartAsked):
                known[inbox] = shown(asked.root or session)
            elif inbox not in known:
                begun = [each async for each in self.store.read(inbox, until=1)]
                if not begun:
                    continue
                known[inbox] = begun[0].correlation_id
            known[write.stream] = known[inbox]

    def _prepare(self, write: FactWrite, occurred_us: int, blobs: dict[str, bytes]) -> Write:
        drafts = []
        correlation = write.correlation_id or self._correlations.get(write.stream)
        actor = write.actor if callable(write.actor) else lambda _: write.actor
        for step, facts in enumerate(write.steps):
            for fact in facts:
                encoded = self._codec.encode(
                    fact,
                    actor=actor(fact),
                    occurred_us=occurred_us,
                    step=step,
                    correlation_id=correlation,
                    causation_id=write.causation_id,
                )
                drafts.append(encoded.draft)
                blobs |= encoded.blobs
        return Write(
            write.stream, drafts, write.expected_version, write.epoch, write.after, write.empties
        )

    async def fact_of(self, recorded: RecordedEvent) -> Fact | Redacted | Unreadable:
        """Return the fact of *recorded*, or the reason why this cueline cannot read it."""
        try:
            try:
                return self._codec.decode(recorded)
            except MissingBlobError:
                return self._codec.decode(recorded, await self._blobs_of(recorded))
        except (CorruptEventError, UnknownEventTypeError) as error:
            return Unreadable(recorded.type, error)

    async def _blobs_of(self, recorded: RecordedEvent) -> dict[str, bytes]:
        """Return the long values that *recorded* names."""
        return {blob: await self.get_blob(recorded, blob) for blob in blobs_in(recorded.payload)}


async def _listed(events: Sequence[RecordedEvent]) -> AsyncIterator[RecordedEvent]:
    for each in events:
        yield each
