"""A session as the log tells it: its past, then its events as they come."""

from collections.abc import AsyncIterator
from typing import cast

from cueline.deciders.session import SESSION, session_of
from cueline.events.codec import Emptied
from cueline.events.journal import Journal
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, EventStore, RecordedEvent
from cueline.events.stream import sibling

Past = list[tuple[RecordedEvent, SessionEvent | None]]
"""Events in order; None stands for an emptied one."""


class Followed:
    """One session, read from the log by somebody who does not own it."""

    def __init__(self, stream: str, journal: Journal) -> None:
        self.stream = stream
        self.state = session_of(stream)
        self.version = NO_STREAM
        self._journal = journal
        self._position = 0

    @property
    def store(self) -> EventStore:
        """The log it is read from."""
        return self._journal.store

    async def past(
        self, until: int | None = None
    ) -> AsyncIterator[tuple[RecordedEvent, SessionEvent | None]]:
        """Read what has happened, each event checked; None stands for an emptied one.

        Raises:
            CorruptEventError: restore; what was read before stays true.
            UnknownEventTypeError: upgrade cueline.
            MissingBlobError: a long value is gone; restore.
        """
        self._position = await self._journal.store.last_position()
        async for pair in self._read(until):
            yield pair

    async def onward(self) -> AsyncIterator[Past]:
        """Read what comes after, for ever, at least an append at a time; raises as `past` does.

        In the middle of an append the state may be one that never was.
        """
        # What others record only rings the bell; ours is read by its chain.
        async for recorded in self._journal.store.follow(self._position, {"session"}):
            if recorded.stream == self.stream and recorded.version > self.version:
                yield [pair async for pair in self._read(None)]

    async def unread(self) -> bool:
        """Whether its inbox holds messages that it has not read."""
        inbox = await self._journal.store.head(sibling(self.stream, "inbox"))
        return inbox.version > max(self.state.inbox_read, 1) or self.version == NO_STREAM

    async def _read(
        self, until: int | None
    ) -> AsyncIterator[tuple[RecordedEvent, SessionEvent | None]]:
        async for recorded, fact in self._journal.read(self.stream, self.version, until):
            self.version = recorded.version
            if isinstance(fact, Emptied):
                yield recorded, None
                continue
            event = cast("SessionEvent", fact)
            self.state = SESSION.evolve(self.state, event)
            yield recorded, event
