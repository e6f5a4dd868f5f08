"""Whoever waits for a session: told what happens, and when it is in vain."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Protocol, cast

from cueline.actors.inbox import check_asked_for
from cueline.actors.owner import LOOK_SECONDS, Vigil, owner_of, sleeps
from cueline.clock import Clock
from cueline.deciders.session import SESSION, SessionState, rests, session_of
from cueline.errors import (
    CuelineError,
    LogUnavailableError,
    SessionOwnedError,
    SessionUndrivenError,
)
from cueline.events.codec import Emptied
from cueline.events.journal import Journal, Unread
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, PresenceBoard
from cueline.events.stream import shown, sibling

Told = tuple[int, SessionEvent, SessionState]
"""A version, its fact, and the state by then."""


class Home(Protocol):
    """What a runtime knows of the sessions that it drives."""

    def trouble(self, stream: str) -> CuelineError | None:
        """Return why a session cannot be driven here."""
        ...

    def takes_up(self, stream: str) -> bool:
        """Whether it, or a running `cueline up`, goes on with a session for certain."""
        ...

    def has(self, incarnation: str | None) -> bool:
        """Whether this is one of its own hosts."""
        ...


class Reading:
    """One session, read from the log by somebody who does not own it."""

    def __init__(self, stream: str, journal: Journal) -> None:
        self.stream = stream
        self.version = NO_STREAM
        self.state = session_of(stream)
        self._journal = journal
        self._position = 0

    async def past(self) -> AsyncIterator[Told]:
        """Read what has happened.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
        """
        await check_asked_for(self._journal.store, self.stream)
        self._position = await self._journal.store.last_position()
        async for recorded, fact in self._journal.read(self.stream):
            self.version = recorded.version
            if not isinstance(fact, Emptied):
                yield self._told(cast("SessionEvent", fact))

    async def onward(self) -> AsyncGenerator[Told]:
        """Read what comes after, for ever."""
        async for recorded, fact in self._journal.follow(self._position, {"session"}):
            if recorded.stream != self.stream or recorded.version <= self.version:
                continue
            if isinstance(fact, Unread):
                raise fact.error
            self.version = recorded.version
            if not isinstance(fact, Emptied):
                yield self._told(cast("SessionEvent", fact))

    def _told(self, event: SessionEvent) -> Told:
        self.state = SESSION.evolve(self.state, event)
        return self.version, event, self.state


class Waiter:
    """Somebody who waits until a session rests. It drives nothing, and holds nothing up."""

    def __init__(
        self, stream: str, journal: Journal, board: PresenceBoard, clock: Clock, home: Home
    ) -> None:
        self._reading = Reading(stream, journal)
        self._store = journal.store
        self._board = board
        self._clock = clock
        self._home = home
        taken_up = partial(home.takes_up, stream)
        self._vigil = Vigil(stream, self._store, board, clock, taken_up=taken_up)

    async def until_it_rests(self) -> AsyncGenerator[Told]:
        """Read what has happened and what comes, as long as there is anything to wait for.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionUndrivenError: nobody drives it, so nothing more would come.
            SessionOwnedError: it was taken over from here in the middle of a call.
            CuelineError: it cannot be driven here; the message says why.
        """
        async for told in self._reading.past():
            yield told
        if not await self._rests():
            await self._check()
        async with aclosing(self._reading.onward()) as onward:
            while not await self._rests():
                coming = asyncio.ensure_future(anext(onward))
                try:
                    await self._look_until(coming)
                    yield coming.result()
                finally:
                    coming.cancel()
                    await asyncio.wait([coming])

    async def _look_until(self, coming: asyncio.Future[Told]) -> None:
        """Return when the next fact has come; raise where it would be waited for in vain."""
        while not coming.done():
            looking = asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS))
            both: tuple[asyncio.Future[Any], ...] = (coming, looking)
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                looking.cancel()
            if not coming.done():
                await self._check()

    async def _check(self) -> None:
        """Raise where nobody goes on with the session, or not as long as it is waited for here."""
        stream, state = self._reading.stream, self._reading.state
        if (trouble := self._home.trouble(stream)) is not None:
            raise trouble
        # Who cannot read the log or the board now looks again.
        with suppress(LogUnavailableError):
            await self._check_owner(state)
            idle = sleeps(state, self._clock.now()) and not await self._unread()
            if not state.finished and (why := await self._vigil.why_left(idle=idle)) is not None:
                raise SessionUndrivenError(shown(stream), why)

    async def _check_owner(self, state: SessionState) -> None:
        """Raise where the session was taken over, and a call of it is still here.

        Inline, host and runner are one process, which was frozen until then: the
        other waits for the end of the call, which it cannot ask us about, and
        that comes with our own.
        """
        if not any(self._home.has(call.runner) for call in state.open_calls):
            return
        now = self._clock.now()
        owner = await owner_of(self._store, self._board, state.stream, now)
        if owner is not None and not self._home.has(owner.incarnation):
            raise SessionOwnedError(shown(state.stream), owner.machine, owner.pid)

    async def _rests(self) -> bool:
        """Whether only a person, or nobody, can make it go on; nothing more is recorded yet."""
        reading, state = self._reading, self._reading.state
        if not rests(state, self._clock.now()):
            return False
        if not state.finished and await self._unread():
            return False
        return (await self._store.head(reading.stream)).version == reading.version

    async def _unread(self) -> bool:
        """Whether its inbox holds messages that it has not read."""
        reading = self._reading
        inbox = await self._store.head(sibling(reading.stream, "inbox"))
        return inbox.version > max(reading.state.inbox_read, 1)
