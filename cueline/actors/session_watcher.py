"""Whoever waits for a session: told what happens, and when it is in vain."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Protocol

from cueline.actors.inbox import check_asked_for
from cueline.actors.session_owner import LOOK_SECONDS, OrphanDetector, has_wake_time, next_owner
from cueline.actors.session_reader import SessionReader
from cueline.actors.stream_end import BUSY, LastFact, can_resume, has_read_all, last_fact
from cueline.actors.stream_notifier import StreamNotifier
from cueline.clock import Clock
from cueline.deciders.session import SessionState, rests
from cueline.errors import (
    CuelineError,
    LogUnavailableError,
    SessionOwnedError,
    SessionUndrivenError,
)
from cueline.events.session import SessionCompleted, SessionEvent, SessionIdle
from cueline.events.store import PresenceBoard, RecordedEvent
from cueline.events.stream import shown

Check = Callable[[], Awaitable[bool | None]]
"""Raises where it would be waited in vain; True ends the wait."""
Told = tuple[int, SessionEvent, SessionState]
"""A version, its fact, and the state by then."""
Heard = Sequence[RecordedEvent]
"""The newest events of a session, as the lookout has read them."""


class RuntimeContext(Protocol):
    """What a runtime knows of the sessions that it drives, and of who has it."""

    @property
    def user(self) -> str:
        """The name of the person whose process this is."""
        ...

    @property
    def drives(self) -> bool:
        """Whether it drives sessions itself, as long as it lasts."""
        ...

    def trouble(self, stream: str) -> CuelineError | None:
        """Return why a session cannot be driven here."""
        ...

    def tries_again(self, stream: str) -> None:
        """Learn that something is said to a session, which has its hosts try it again."""
        ...

    def takes_up(self, stream: str) -> bool:
        """Whether it, or a running `cueline up`, goes on with a session for certain."""
        ...

    def has(self, incarnation: str | None) -> bool:
        """Whether this is one of its own hosts."""
        ...

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        """Return what waits until a host in this process has let go of a session it drives."""
        ...

    async def take_up(self, stream: str, parent: str | None = None) -> None:
        """Drive a session from now on; a *parent* that is driven here learns of it."""
        ...


class SessionWatcher:
    """Somebody who waits until a session rests. It drives nothing, and holds nothing up."""

    def __init__(
        self,
        session_reader: SessionReader,
        notifier: StreamNotifier,
        board: PresenceBoard,
        clock: Clock,
        home: RuntimeContext,
    ) -> None:
        self._followed = session_reader
        self._journal = session_reader.journal
        self._notifier = notifier
        self._store = session_reader.store
        self._board = board
        self._clock = clock
        self._home = home
        taken_up = partial(home.takes_up, session_reader.stream)
        self._orphan_detector = OrphanDetector(
            session_reader.stream, self._store, board, clock, taken_up=taken_up
        )

    async def until_it_rests(self) -> AsyncGenerator[Told]:
        """Read what has happened and what comes, as long as there is anything to wait for.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionUndrivenError: nobody drives it, so nothing more would come.
            SessionOwnedError: it was taken over from here in the middle of a call.
            CuelineError: it cannot be driven here; the message says why.
        """
        session_reader = self._followed
        await check_asked_for(self._store, session_reader.stream)
        async for told in follow_facts(session_reader):
            yield told
        if not await self._rests():
            await self._check()
        async with aclosing(self._notifier.changes(session_reader.stream)) as growing:
            while not await self._rests():
                heard = await self._look_until(asyncio.ensure_future(anext(growing)), self._check)
                async for told in follow_facts(session_reader, heard):
                    yield told

    async def follow(self) -> AsyncGenerator[Told]:
        """Read what has happened and what comes, whoever drives it.

        Raises:
            UnknownSessionError: nobody has asked for such a session.
            SessionOwnedError: it was taken over from here in the middle of a call.
        """
        session_reader = self._followed
        await check_asked_for(self._store, session_reader.stream)
        async with aclosing(self._notifier.changes(session_reader.stream)) as growing:
            while True:
                grown = asyncio.ensure_future(anext(growing))
                heard = await self._look_until(grown, self._check_taken)
                async for told in follow_facts(session_reader, heard):
                    yield told

    async def wait_for_answer(self) -> SessionCompleted | SessionIdle | None:
        """Wait until the session may rest, and return what it said last, if it rests after that.

        None where its past has to be read to tell how it stands: see `until_it_rests`, which
        raises the same. No more than the end of its stream is read while a host in this process
        has it, or it goes on elsewhere; where nothing happens for a while, its last turn, too.
        """
        journal, stream = self._journal, self._followed.stream
        await check_asked_for(self._store, stream)
        last = await self._wait_for_own_host()
        async with aclosing(self._notifier.changes(stream, but=BUSY)) as growing:
            while can_resume(last) and not await self._check_others():
                await self._look_until(asyncio.ensure_future(anext(growing)), self._check_others)
                last = await last_fact(journal, stream)
        if isinstance(last, SessionIdle) and not await has_read_all(journal, stream):
            return None
        return last if isinstance(last, SessionCompleted | SessionIdle) else None

    async def _wait_for_own_host(self) -> LastFact:
        """Wait as long as a host in this process drives the session, and nobody took it over.

        Returns the last fact.
        """
        stream = self._followed.stream
        while can_resume(last := await last_fact(self._journal, stream)):
            owner = (await self._store.head(stream)).owner
            if owner is not None and not self._home.has(owner):
                break
            if (settled := self._home.settled(stream)) is None:
                break
            waiting = [asyncio.ensure_future(settled), self._look_again()]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waiting:
                    each.cancel()
        return last

    def _look_again(self) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS))

    async def _look_until(self, growing: asyncio.Future[Heard], check: Check) -> Heard:
        """Return when there is more to read, or *check* ends it, which is asked now and then.

        Returns what the lookout has read of it.
        """
        try:
            while not growing.done():
                looking = self._look_again()
                try:
                    await asyncio.wait((growing, looking), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    looking.cancel()
                if not growing.done() and await check():
                    return ()
            return growing.result()
        finally:
            growing.cancel()
            await asyncio.wait([growing])

    async def _check_others(self) -> bool:
        """Whether it rests; raises as `_check` does."""
        with suppress(LogUnavailableError):  # looked at again
            await self._followed.read_last_turn()
        if await self._rests():
            return True
        await self._check()
        return False

    async def _check(self) -> None:
        """Raise where nobody goes on with the session, or not as long as it is waited for here."""
        stream, state = self._followed.stream, self._followed.state
        if (trouble := self._home.trouble(stream)) is not None:
            raise trouble
        await self._check_taken()
        with suppress(LogUnavailableError):  # looked at again
            idle = has_wake_time(state, self._clock.now()) and not await self._followed.unread()
            if (why := await self._orphan_detector.orphan_reason(idle=idle)) is not None:
                raise SessionUndrivenError(shown(stream), why)

    async def _check_taken(self) -> None:
        """Raise where somebody took the session over, and waits for a call that is with us."""
        state, now = self._followed.state, self._clock.now()
        with suppress(LogUnavailableError):  # looked at again
            taker = await next_owner(state, self._store, self._board, now, self._home.has)
            if taker is not None:
                raise SessionOwnedError(shown(state.stream), taker.machine, taker.pid)

    async def _rests(self) -> bool:
        """Whether only a person, or nobody, can make it go on."""
        state = self._followed.state
        if not rests(state, self._clock.now()):
            return False
        return state.finished or not await self._followed.unread()


async def follow_facts(session_reader: SessionReader, heard: Heard = ()) -> AsyncIterator[Told]:
    """Read on in what was not emptied."""
    async for recorded, fact in session_reader.read(heard=heard):
        if fact is not None:
            yield recorded.version, fact, session_reader.state
