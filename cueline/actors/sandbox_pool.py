"""The pool of sandboxes: gives each session its own, and stops those of sessions that wait.

Every append is a compare-and-set, and every act has its intent in the log before it (I2). So a
pool may die anywhere: the next one asks the back-ends what is there, by label.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from cueline.actors.background_task import Trouble, repeat_forever
from cueline.actors.fold import SessionCache
from cueline.actors.sandbox_life import SandboxActs, sandbox_of
from cueline.actors.sandbox_port import (
    LOG_LABEL,
    NAME_LABEL,
    SESSION_LABEL,
    SandboxBackend,
)
from cueline.actors.sandbox_slots import SlotLog
from cueline.clock import Clock
from cueline.deciders.session import SessionState, session_of
from cueline.errors import (
    CorruptEventError,
    CuelineError,
    SandboxError,
    SandboxGoneError,
    WrongExpectedVersionError,
)
from cueline.events.journal import Journal
from cueline.events.sandbox import (
    SandboxAct,
    SandboxAsked,
    SandboxSpec,
    SlotAsked,
    SlotFreed,
)
from cueline.events.sanitize import SHORTEST_SECRET
from cueline.events.status import Status
from cueline.events.stream import sibling

SLOT_COUNT: Final = 10
TRIES: Final = 3
"""The number of sandboxes that a session gets in a row if each is gone."""
WAKE_SECONDS: Final = 60.0
"""The time that a session has to use the slot that it waited for."""
TICK_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 20.0
"""The time in which a process that ends stops its sandboxes."""
SWEEP_SECONDS: Final = 30.0


class SandboxWish(Struct, frozen=True):
    """What a session wants: its own sandbox, started."""

    session: str
    spec: SandboxSpec
    number: int
    """The number of the session's last sandbox; 0: it had none."""
    environment: dict[str, str]
    """The variables of the sandbox's commands; they are not recorded."""


class SandboxReady(Struct, frozen=True):
    """The sandbox of a session is started."""

    number: int
    place: str
    lost: str = ""
    """Why the former one is gone, if this one is fresh instead."""


class SlotWait(Struct, frozen=True):
    """All slots are taken; a message in the inbox says when the session has one."""

    ahead: int
    slots: int


class SandboxPort(Protocol):
    """The pool as a session host sees it."""

    async def attach(self, wish: SandboxWish) -> SandboxReady | SlotWait:
        """Start the session's sandbox, or create one; repeatable.

        Raises:
            SandboxError: the back-end failed; the session keeps its slot.
        """


class SandboxPool:
    """See `SandboxPort`."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        backend: Callable[[str], SandboxBackend],
        *,
        on_trouble: Trouble,
        slots: int = SLOT_COUNT,
        grace_seconds: float = 0.0,
    ) -> None:
        """Create the pool.

        Args:
            journal: the log.
            clock: the clock.
            backend: returns the back-end of a name; raises `ConfigError` without one.
            on_trouble: gets the failures of back-ends.
            slots: the number of sandboxes that may be started at a time.
            grace_seconds: how long the sandbox of a session that waits stays started.
        """
        self._journal = journal
        self._clock = clock
        self._backend = backend
        self._on_trouble = on_trouble
        self._slots = slots
        self._grace_seconds = grace_seconds
        self._slot_log = SlotLog(journal)
        self._acts = SandboxActs(journal, clock)
        self._sessions = SessionCache(journal)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """A lock for each session with a sandbox, so that a stop never comes after a start."""
        self._resting: dict[str, float] = {}
        """When each session with a slot was first seen to rest."""
        self._swept = -SWEEP_SECONDS
        self._watching: asyncio.Task[None] | None = None

    async def attach(self, wish: SandboxWish) -> SandboxReady | SlotWait:
        self._watch()
        self._backend(wish.spec.backend)  # before it takes a slot
        async with self._locks[wish.session]:
            number, lost = max(wish.number, 1), ""
            asked = SlotAsked(
                session=wish.session,
                spec=wish.spec,
                number=number,
                slots=self._slots,
                at=self._clock.now(),
            )
            slots = await self._slot_log.decide(asked)
            if not slots.has(wish.session):
                return SlotWait(slots.place(wish.session), self._slots)
            for _ in range(TRIES):
                try:
                    place = await self._start(wish, number)
                except SandboxGoneError as error:
                    number, lost = number + 1, error.reason
                    continue
                except WrongExpectedVersionError:
                    continue  # the pool of another process was about to stop it
                fresh = "" if number == wish.number or not wish.number else lost
                return SandboxReady(number, place, fresh)
            raise SandboxError(sandbox_of(wish.session, number), f"each is gone at once: {lost}")

    async def watch(self) -> None:
        """Look after the sandboxes from now on, if the log has any."""
        if (await self._slot_log.read()).backends:
            self._watch()

    async def close(self) -> None:
        """Stop the sandboxes of sessions that rest, and look after them no longer."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            with suppress(TimeoutError, CuelineError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.tick()

    def _watch(self) -> None:
        if self._watching is None:
            self._watching = asyncio.create_task(
                repeat_forever(
                    "looking after sandboxes",
                    self._look,
                    clock=self._clock,
                    on_trouble=self._on_trouble,
                )
            )

    async def _look(self) -> None:
        await self.tick()
        await self._clock.sleep(TICK_SECONDS)

    async def tick(self) -> None:
        """Stop the sandboxes of sessions that wait, delete those of ended ones, free their slots.

        Raises:
            SandboxError: a back-end failed; the other sandboxes were looked after.
        """
        slots = await self._slot_log.read()
        held = {each.session for each in slots.held}
        self._resting = {name: at for name, at in self._resting.items() if name in held}
        looks = map(self.look_after, slots.held)
        outcomes = await asyncio.gather(*looks, return_exceptions=True)
        if self._time() - self._swept >= SWEEP_SECONDS:
            self._swept = self._time()
            sweeps = map(self.sweep, slots.backends)
            outcomes += await asyncio.gather(*sweeps, return_exceptions=True)
        for trouble in outcomes:
            if trouble is not None:
                raise trouble

    async def sweep(self, backend: str) -> None:
        """Delete what ended sessions left at a *backend*, and stop what has no slot.

        Raises:
            SandboxError: the back-end failed.
        """
        find = partial(self._backend(backend).find, {LOG_LABEL: self._journal.store.log_id})
        for found in await self._acts.ask(backend, find):
            session = found.labels.get(SESSION_LABEL, "")
            async with self._locks[session]:
                state = await self._fold(session)
                is_over = state.finished or not await self._exists(session)
                has_slot = (await self._slot_log.read()).has(session)
                if is_over or (found.state == "started" and not has_slot):
                    act: SandboxAct = "delete" if is_over else "stop"
                    await self.end(found.labels[NAME_LABEL], backend, act)

    async def _fold(self, session: str) -> SessionState:
        """Return the state of a session; one whose content was removed counts as stopped."""
        try:
            return (await self._sessions.fold(session))[0]
        except CorruptEventError:
            async for first in self._journal.store.read(session, limit=1):
                if first.payload is None:
                    return replace(session_of(session), status=Status.STOPPED)
            raise

    async def _exists(self, session: str) -> bool:
        """Whether the session has begun, or has been asked for, such as a fork."""
        heads = await self._journal.store.heads([session, sibling(session, "inbox")])
        return any(head.version for head in heads.values())

    async def look_after(self, asked: SlotAsked) -> None:
        """Stop or delete the sandbox of a session that rests, and free its slot.

        Raises:
            SandboxError: the back-end failed.
        """
        session = asked.session
        state = await self._fold(session)
        if not _rests(state):
            self._resting.pop(session, None)
            return
        since = self._resting.setdefault(session, self._time())
        wakes = state.waiting is not None and state.waiting.kind == "sandbox"
        grace = WAKE_SECONDS if wakes else 0.0 if state.finished else self._grace_seconds
        if self._time() - since < grace:
            return
        async with self._locks[session]:
            state = await self._fold(session)
            if not _rests(state):
                return
            number = asked.number
            while (await self._acts.life(sandbox_of(session, number + 1)))[0].asked is not None:
                number += 1
            act: SandboxAct = "delete" if state.finished else "stop"
            await self.end(sandbox_of(session, number), asked.spec.backend, act)
            freed = SlotFreed(session=session, slots=self._slots, at=self._clock.now())
            # A session that did not come for its slot asks again, and is the last then.
            await self._slot_log.decide(freed, wakes=[session] if wakes else [])
            self._resting.pop(session, None)

    async def end(self, name: str, backend_name: str, act: SandboxAct) -> None:
        """Stop or delete the sandbox *name*, even if the outcome of its creation is unknown.

        Raises:
            SandboxError: the back-end failed.
        """
        life = await self._acts.life(name)
        backend, asked = self._backend(backend_name), life[0].asked
        if life[0].gone and act == "stop":
            return

        def end() -> str:
            labels = {LOG_LABEL: self._journal.store.log_id, NAME_LABEL: name}
            places = dict.fromkeys([life[0].place, *(each.place for each in backend.find(labels))])
            for place in filter(None, places):
                (backend.delete if act == "delete" else backend.stop)(place)
            return next(reversed(places))

        if asked is None:  # the log was restored to a time before it
            await self._acts.ask(name, end)
            return
        wanted = asked.model_copy(update={"act": act, "at": self._clock.now()})
        with suppress(SandboxGoneError):
            try:
                await self._acts.act(name, life, wanted, end)
            except WrongExpectedVersionError:
                # The pool of another process has started it for its session since.
                now, _ = await self._acts.life(name)
                if now.asked is not None and now.asked.act in {"create", "start"} and now.place:
                    await self._acts.ask(name, partial(backend.start, now.place))

    async def _start(self, wish: SandboxWish, number: int) -> str:
        name = sandbox_of(wish.session, number)
        life = await self._acts.life(name)
        if life[0].gone:
            raise SandboxGoneError(name, "it is gone")
        backend, place = self._backend(wish.spec.backend), life[0].place
        labels = {
            LOG_LABEL: self._journal.store.log_id,
            NAME_LABEL: name,
            SESSION_LABEL: wish.session,
        }

        def create() -> str:
            if wish.spec.volume:
                backend.volume(wish.spec.volume)
            return backend.create(wish.spec, labels, wish.environment)

        def start() -> str:
            backend.start(place)
            backend.keep_alive(place)
            return place

        act: SandboxAct = "start" if place else "create"
        asked = SandboxAsked(act=act, session=wish.session, spec=wish.spec, at=self._clock.now())
        hidden = [value for value in wish.environment.values() if len(value) >= SHORTEST_SECRET]
        return await self._acts.act(name, life, asked, start if place else create, hidden)

    def _time(self) -> float:
        return self._clock.now().timestamp()


def _rests(state: SessionState) -> bool:
    """Whether no command of the session runs until it continues."""
    return state.finished or state.waiting is not None or state.status is Status.IDLE
