"""Reads a session from the log without owning it."""

from collections.abc import AsyncIterator, Sequence
from typing import cast

from msgspec.structs import replace

from cueline.actors.rule_failure import folded
from cueline.actors.stream_end import inbox_seen, last_of
from cueline.deciders.session import session_of
from cueline.deciders.session.current_agent import with_changes
from cueline.errors import CorruptEventError
from cueline.events.codec import EMPTIED, Redacted
from cueline.events.journal import Journal
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, EventStore, RecordedEvent
from cueline.events.stream import sibling

Past = list[tuple[RecordedEvent, SessionEvent | None]]
"""Events in order; None for a redacted one."""


class SessionReader:
    """The folded state of one session, up to the read version."""

    def __init__(self, stream: str, journal: Journal) -> None:
        self.stream = stream
        self.state = session_of(stream)
        self.version = NO_STREAM
        self.emptied: CorruptEventError | None = None
        """The reason why a session with a redacted event cannot continue; otherwise None."""
        self.journal = journal
        """The journal of the log."""

    @property
    def store(self) -> EventStore:
        """The log of the session."""
        return self.journal.store

    async def read(
        self, until: int | None = None, heard: Sequence[RecordedEvent] = ()
    ) -> AsyncIterator[tuple[RecordedEvent, SessionEvent | None]]:
        """Read on and check each event against the previous one; None for a redacted event.

        Within one append, the state may be incomplete. Events in *heard* were read
        already: see `Journal.read`.

        Raises:
            CorruptEventError: restore the log; the earlier events are valid.
            UnknownEventTypeError: upgrade cueline.
        """
        async for recorded, fact in self.journal.read(self.stream, self.version, until, heard):
            self.version = recorded.version
            if isinstance(fact, Redacted):
                self.emptied = self.emptied or CorruptEventError(*recorded[:3], EMPTIED)
                yield recorded, None
                continue
            event = cast("SessionEvent", fact)
            self.state = folded(self.state, event)
            yield recorded, event

    async def skip(self, until: int) -> None:
        """Continue after version *until*.

        Of the earlier events, use only the inbox position and the changes of the agent. From
        the beginning of a turn on, the current state is correct; totals are not.
        """
        seen = await inbox_seen(self.journal, self.stream, until)
        self.state = replace(self.state, inbox_read=seen)
        if self.state.setup is not None and seen > 1:
            inbox = sibling(self.stream, "inbox")
            said = [message async for _, message in self.journal.read(inbox, 1, seen)]
            agent = with_changes(self.state.agent, said)
            self.state = replace(self.state, setup=replace(self.state.setup, agent=agent))
        self.version = until

    async def read_last_turn(self) -> None:
        """Read on; the first time, read only the first event and the last turn.

        This is enough for the current state. Raises the errors of `read`.
        """
        if self.version == NO_STREAM:
            await self._take(until=1)
            length = (await self.store.head(self.stream)).version
            begins = await last_of(self.store, self.stream, {"ModelRequested"}, length)
            if begins > self.version:
                await self.skip(begins - 1)
        await self._take()

    async def _take(self, until: int | None = None) -> None:
        async for _ in self.read(until):
            pass

    async def unread(self) -> bool:
        """Whether the inbox holds unread messages."""
        inbox = await self.store.head(sibling(self.stream, "inbox"))
        return inbox.version > self.state.inbox_seen or self.version == NO_STREAM
