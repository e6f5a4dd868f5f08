"""Watches a session: yields its events until it waits or ends.

A watcher raises if no process drives the session.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial

from cueline.actors.background_task import background_task
from cueline.actors.inbox import check_asked_for
from cueline.actors.person_wait import children_at_rest
from cueline.actors.session_owner import LOOK_SECONDS, OrphanDetector, has_wake_time, next_owner
from cueline.actors.session_reader import SessionReader
from cueline.actors.stream_end import BUSY, LastFact, can_resume, has_read_all, last_fact
from cueline.actors.stream_notifier import StreamNotifier
from cueline.client.history import History, SessionView
from cueline.clock import Clock
from cueline.deciders.session import rests
from cueline.errors import LogUnavailableError, SessionOwnedError, SessionUndrivenError
from cueline.events.session import SessionCompleted, SessionEvent, SessionIdle
from cueline.events.store import PresenceBoard, RecordedEvent
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place
from cueline.runtime.up_record import recovers

Check = Callable[[], Awaitable[bool | None]]
"""Raises if no process will add events to the session; returns True to end the wait."""
Stays = Callable[[], Awaitable[bool]]
"""Whether to continue to wait although the session waits or has ended."""
Told = tuple[RecordedEvent, SessionEvent]
"""An event, and its fact."""
Heard = Sequence[RecordedEvent]
"""The newest events of a session, from the notifier."""


class SessionWatcher:
    """Waits until a session waits or ends, without driving or blocking it."""

    def __init__(
        self,
        session_reader: SessionReader,
        notifier: StreamNotifier,
        board: PresenceBoard,
        clock: Clock,
        place: Place,
    ) -> None:
        self.reader = session_reader
        """The session, up to the read version."""
        self._journal = session_reader.journal
        self._notifier = notifier
        self._store = session_reader.store
        self._board = board
        self._clock = clock
        self._place = place
        self.children: list[SessionView] = []
        """The descendants that wait for a person, while this session waits for descendants."""
        taken_up = partial(place.takes_up, session_reader.stream)
        self._orphan_detector = OrphanDetector(
            session_reader.stream, self._store, board, clock, taken_up=taken_up
        )

    @property
    def view(self) -> SessionView:
        """The state of the session, up to the read version."""
        return SessionView(self.reader.state)

    @property
    def resting(self) -> list[SessionView]:
        """The sessions that wait for a person: children of this session, or the session itself."""
        return self.children or [self.view]

    async def read(self) -> AsyncIterator[Told]:
        """Yield the past events."""
        async for told in follow_facts(self.reader):
            yield told

    async def until_it_rests(self, stays: Stays | None = None) -> AsyncGenerator[Told]:
        """Yield past and new events until the session waits or ends.

        Args:
            stays: whether to continue to wait although the session waits or has ended.

        Raises:
            UnknownSessionError: the session was never started.
            SessionUndrivenError: no process drives the session, so no events would come.
            SessionOwnedError: another process took over the session during a call of this process.
            CuelineError: the session cannot be driven here; the message says why.
        """
        session_reader = self.reader
        await check_asked_for(self._store, session_reader.stream)
        async for told in self.read():
            yield told
        if not await self.rests():
            await self._check()
        async with aclosing(self._notifier.changes(session_reader.stream)) as growing:
            is_over = partial(self._is_over, stays)
            while not await self._is_left(stays):
                heard = await self._look_until(asyncio.ensure_future(anext(growing)), is_over)
                if heard is None:
                    break
                async for told in follow_facts(session_reader, heard):
                    yield told

    async def follow(self) -> AsyncGenerator[Told]:
        """Yield past and new events, with any driver of the session.

        Raises:
            UnknownSessionError: the session was never started.
            SessionOwnedError: another process took over the session during a call of this process.
        """
        session_reader = self.reader
        await check_asked_for(self._store, session_reader.stream)
        async with aclosing(self._notifier.changes(session_reader.stream)) as growing:
            while True:
                grown = asyncio.ensure_future(anext(growing))
                heard = await self._look_until(grown, self._check_taken)
                async for told in follow_facts(session_reader, heard or ()):
                    yield told

    async def wait_for_answer(self) -> SessionCompleted | SessionIdle | None:
        """Wait until the session may rest; return its last fact, if it rests after that.

        None if its state cannot be known without reading its past: see `until_it_rests`, which
        raises the same errors. Only the end of the stream is read while a host in this process has
        the session, or it continues elsewhere; if no event comes for a while, also its last turn.
        """
        journal, stream = self._journal, self.reader.stream
        await check_asked_for(self._store, stream)
        last = await self._wait_for_own_host()
        async with aclosing(self._notifier.changes(stream, but=BUSY)) as growing:
            while can_resume(last) and not await self._check_others():
                grown = asyncio.ensure_future(anext(growing))
                heard = await self._look_until(grown, self._check_others)
                last = await last_fact(journal, stream)
                if heard is None:
                    break
        if isinstance(last, SessionIdle):
            if not await has_read_all(journal, stream):
                return None
            last = await last_fact(journal, stream)  # a message may have been read since
        return last if isinstance(last, SessionCompleted | SessionIdle) else None

    async def _wait_for_own_host(self) -> LastFact:
        """Wait while a host in this process drives the session; return the last fact."""
        stream = self.reader.stream
        while can_resume(last := await last_fact(self._journal, stream)):
            owner = (await self._store.head(stream)).owner
            if owner is not None and not self._place.has(owner):
                break
            if (settled := self._place.settled(stream)) is None:
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

    async def _look_until(self, growing: asyncio.Future[Heard], check: Check) -> Heard | None:
        """Wait for new events and return them; None if *check* ends the wait.

        After None, the generator of events has ended, too.
        """
        try:
            while not growing.done():
                looking = self._look_again()
                try:
                    await asyncio.wait((growing, looking), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    looking.cancel()
                if not growing.done() and await check():
                    return None
            return growing.result()
        finally:
            growing.cancel()
            await asyncio.wait([growing])

    async def _check_others(self) -> bool:
        """Whether the session waits; raises the errors of `_check`."""
        with suppress(LogUnavailableError):  # read again
            await self.reader.read_last_turn()
            if await self.rests():
                return True
        await self._check()
        return False

    async def _is_over(self, stays: Stays | None) -> bool:
        """Whether the session is left: see `_is_left`. Raises the errors of `_check`."""
        await self._check()
        return await self._is_left(stays)

    async def _is_left(self, stays: Stays | None) -> bool:
        """Whether the session rests without a driver; false while the log is unavailable."""
        with suppress(LogUnavailableError):  # read again
            if await self.rests():
                return stays is None or not await stays()
            if self.children and stays is not None:
                await stays()  # one below asks a person, while others work
        return False

    async def _check(self) -> None:
        """Raise if no process drives the session, or will drive it."""
        stream, state = self.reader.stream, self.reader.state
        if (trouble := self._place.trouble(stream)) is not None:
            raise trouble
        await self._check_taken()
        with suppress(LogUnavailableError):  # read again
            now = self._clock.now()
            idle = rests(state, now) or has_wake_time(state, now)
            idle = idle and not await self.reader.unread()
            if (why := await self._orphan_detector.orphan_reason(idle=idle)) is not None:
                raise SessionUndrivenError(shown(stream), why)

    async def _check_taken(self) -> None:
        """Raise if another process has taken over the session, and waits for a call of this one."""
        state, now = self.reader.state, self._clock.now()
        with suppress(LogUnavailableError):  # read again
            taker = await next_owner(state, self._store, self._board, now, self._place.has)
            if taker is not None:
                raise SessionOwnedError(shown(state.stream), taker.machine, taker.pid)

    async def rests(self) -> bool:
        """Whether only a person can continue the session, or it has ended."""
        state, now = self.reader.state, self._clock.now()
        self.children = []
        if state.waiting is not None and state.waiting.kind == "child":
            below, all_rest = await children_at_rest(self._journal, state, now)
            self.children = [SessionView(each) for each in below]
            return all_rest and not await self.reader.unread()
        if not rests(state, now):
            return False
        return state.finished or not await self.reader.unread()


async def follow_facts(session_reader: SessionReader, heard: Heard = ()) -> AsyncIterator[Told]:
    """Yield the events that are not redacted."""
    async for recorded, fact in session_reader.read(heard=heard):
        if fact is not None:
            yield recorded, fact


Left = Callable[[str], None]
"""The callback for the reason why a session has no driver."""


async def follow(
    log: OpenLog, history: History, left: Left
) -> AsyncGenerator[tuple[RecordedEvent, SessionEvent | None]]:
    """Yield the new events after a *history*, until the session has ended.

    The state of the history continues with them. *left* is called each time that the session
    loses its driver although it does not rest.

    Raises:
        CorruptEventError: an event cannot be read.
    """
    session_reader = history.followed
    if history.state.finished:
        return
    up = partial(recovers, log.url)
    orphan_detector = OrphanDetector(history.stream, log.store, log.board, log.clock, taken_up=up)
    with background_task(warn_of_orphan(session_reader, orphan_detector, log.clock, left)):
        async with aclosing(log.notifier.changes(history.stream)) as growing:
            async for _ in growing:
                async for pair in session_reader.read():
                    yield pair
                if session_reader.state.finished:
                    return


async def warn_of_orphan(
    session_reader: SessionReader, orphan_detector: OrphanDetector, clock: Clock, left: Left
) -> None:
    """Call *left* each time that a session that does not rest has no driver; without end."""
    told = False
    while True:
        with suppress(LogUnavailableError):  # looked at again
            state, now = session_reader.state, clock.now()
            idle = (
                rests(state, now) or has_wake_time(state, now)
            ) and not await session_reader.unread()
            why = await orphan_detector.orphan_reason(idle=idle)
            if why is not None and not told:
                left(why)
            told = why is not None
        await clock.sleep(LOOK_SECONDS)
