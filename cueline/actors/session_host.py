"""The session host, which drives many sessions in one process."""

import asyncio
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol

from cueline.actors.agent_cache import AgentCache
from cueline.actors.assignments import HostReport
from cueline.actors.background_task import Trouble, safe_callback
from cueline.actors.breaker_registry import BreakerRegistry
from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.runner_slots import SlotTable
from cueline.actors.session_log import log_trouble
from cueline.actors.session_loop import SessionLoop
from cueline.actors.session_owner import left_by, set_aside_owner
from cueline.actors.timers import Timers
from cueline.errors import (
    CorruptEventError,
    CuelineError,
    FencedError,
    UnknownSessionError,
    WrongExpectedVersionError,
)
from cueline.events.store import NO_STREAM
from cueline.events.stream import shown, sibling

ACTIVATIONS = 50
"""Number of sessions that are activated at a time."""
ACTIVE = 10_000
"""Number of active sessions in one host."""
RECORD_SECONDS = 1.0
"""Time for a draining host to record the calls that it cut short."""


class HostPort(Protocol):
    """The port to a session host, local or remote, for a dispatcher."""

    async def activate_all(self, streams: list[str]) -> list[str]:
        """Activate sessions; active ones read their inbox.

        Returns the sessions for which the host has no place, because it is full or draining.
        """

    async def report(self, after: int | None) -> HostReport | None:
        """Return the changes since the report *after*, or all sessions if that is not the last.

        Returns None if the host does not answer.
        """

    async def hand_over(self, sessions: int) -> None:
        """Give up a number of further sessions, each as soon as its running effects have ended."""

    async def look_at_breakers(self) -> None:
        """Read the new breaker events."""


class SessionHost:
    """Drives sessions with work; a session without work takes no memory (I12)."""

    def __init__(
        self, incarnation: str, dependencies: HostDependencies, *, on_trouble: Trouble
    ) -> None:
        told = safe_callback(on_trouble)
        self.incarnation = incarnation
        self.live_text = dependencies.live_text
        """The live text of its sessions' replies."""
        self._dependencies = dependencies
        self._journal = dependencies.journal(None)
        self._agent_cache = AgentCache(dependencies.journal, dependencies.models)
        self._breakers = BreakerRegistry(
            incarnation,
            self._journal,
            dependencies.clock,
            account=dependencies.account,
            report=told,
        )
        self._alarm = Timers(dependencies.clock)
        self._slots = SlotTable(dependencies.slots)
        self._loops: dict[str, SessionLoop] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._context = copy_context()
        """The context of all sessions' tasks; a separate context for each would take 0.3 KB."""
        self._loading = asyncio.Semaphore(ACTIVATIONS)
        self._set_aside: dict[str, int] = {}
        """Sessions that cannot be driven here, with the inbox version at the failure."""
        self._on_trouble = told
        self._draining = False
        self._leaving: set[str] = set()
        """Sessions that are given up when their running effects have ended."""
        self._ended: dict[str, bool] = {}
        """Sessions that became inactive since the last report; True for one with work left."""
        self._reports = 0

    async def activate_all(self, streams: list[str]) -> list[str]:
        return [stream for stream in streams if not self.activate(stream)]

    def share(self, hosts: int) -> None:
        """Use this host's share of each runner's slots, which *hosts* hosts share."""
        self._slots.resize(self._dependencies.slots.share(hosts))

    async def report(self, after: int | None) -> HostReport:
        ended, self._ended = self._ended, {}
        is_next = after == self._reports
        self._reports += 1
        return HostReport(
            number=self._reports,
            ended=ended,
            sessions=len(self._tasks),
            places=0 if self._draining else ACTIVE,
            leaving=len(self._leaving),
            lacking=self._slots.lacking(),
            active=None if is_next else list(self._tasks),
        )

    async def hand_over(self, sessions: int) -> None:
        """See `HostPort.hand_over`; those without a running effect go first."""
        staying = [stream for stream in self._loops if stream not in self._leaving]
        staying.sort(key=lambda stream: self._loops[stream].is_busy)
        for stream in staying[:sessions]:
            self._leaving.add(stream)
            self._loops[stream].drain()

    async def active(self) -> list[str]:
        """Return the active sessions."""
        return list(self._tasks)

    async def look_at_breakers(self) -> None:
        await self._breakers.look()

    def activate(self, stream: str) -> bool:
        """Activate a session, or let it read its inbox; return False if there is no place."""
        if stream in self._tasks:
            if stream in self._loops:
                self._loops[stream].nudge()
            return True
        if self._draining or len(self._tasks) >= ACTIVE:
            return False
        self._ended.pop(stream, None)
        live = self._live(stream)
        # With a name: otherwise Python would make a name of 57 bytes.
        self._tasks[stream] = asyncio.create_task(live, name=stream, context=self._context)
        return True

    def drives(self, stream: str) -> bool:
        """Whether *stream* is active here."""
        return stream in self._tasks

    async def settled(self, stream: str) -> None:
        """Wait until *stream* is not active here."""
        while (task := self._tasks.get(stream)) is not None:
            await asyncio.wait([task])

    async def drain(self, seconds: float) -> None:
        """Start no effects; let running effects finish for *seconds*, record, then stop.

        The next owner continues the sessions.
        """
        self._draining = True
        for loop in self._loops.values():
            loop.drain()
        await self._emptied(seconds)
        for loop in self._loops.values():
            loop.cut_short()
        await self._emptied(RECORD_SECONDS)
        await self.close()

    async def _emptied(self, seconds: float) -> None:
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=seconds)

    async def close(self) -> None:
        """Stop at once; the next owner recovers running effects by their keys."""
        self._draining = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._alarm.close()
        await self._agent_cache.close()

    async def _live(self, stream: str) -> None:
        """Drive one session until it waits; repeat if a message came meanwhile."""
        inbox, has_work = NO_STREAM, True
        try:
            again = stream not in self._set_aside or await self._is_tried_again(stream)
            has_work = again
            while again and not self._draining:
                loop = self._loops[stream] = self._new_loop(stream)
                async with self._loading:
                    # First: a later message may fix any failure after this.
                    inbox = await self._inbox_version(stream)
                    await loop.load()
                # Awaited here: one more coroutine would take 0.25 KB a session.
                await loop.run()
                has_work = False
                if loop.is_held(inbox):
                    return
                if loop.drains and loop.is_driven:
                    await self._hand_over(stream)
                again = not loop.drains and await self._has_news(stream, loop)
                has_work = again or loop.drains
        except (FencedError, WrongExpectedVersionError):
            # Another process owns the session now, and does the due work.
            has_work = False
        except CuelineError as error:
            has_work = error.retryable
            await self._fail(stream, inbox, error)
        except Exception as error:  # noqa: BLE001 - one session's failure must not end the others
            told = f"{shown(stream)}: {type(error).__name__}: {error}"
            bug = CuelineError(self._loops[stream].hidden(told) if stream in self._loops else told)
            bug.__cause__ = error
            has_work = False
            await self._fail(stream, inbox, bug)
        finally:
            # At once, not in a callback: a message that comes now finds no active session here, and
            # activates it.
            self._loops.pop(stream, None)
            self._tasks.pop(stream, None)
            self._leaving.discard(stream)
            self._ended[stream] = has_work

    async def _fail(self, stream: str, inbox: int, error: CuelineError) -> None:
        """Report the error; set the session aside unless the error is temporary."""
        if not error.retryable and not isinstance(error, UnknownSessionError):
            with suppress(CuelineError):
                await self._set_aside_stream(stream)
                loop = self._loops.get(stream)
                self._set_aside[stream] = max(inbox, loop.inbox_seen if loop else NO_STREAM)
        log_trouble(stream, error)
        self._on_trouble(stream, error)

    async def _hand_over(self, stream: str) -> None:
        """Mark a session as handed over, so that no death of a host is counted."""
        store = self._journal.store
        with suppress(CuelineError):
            head = await store.head(stream)
            if head.owner == self.incarnation:
                await store.acquire(stream, left_by(self.incarnation), head.epoch)

    async def _set_aside_stream(self, stream: str) -> None:
        """Set a session aside in the log, so that other processes see that it has no driver."""
        store = self._journal.store
        head = await store.head(stream)
        if head.owner == self.incarnation:
            with suppress(CorruptEventError):  # no other process can acquire it now
                await store.acquire(stream, set_aside_owner(self.incarnation), head.epoch)

    async def _is_tried_again(self, stream: str) -> bool:
        """Whether a session that was set aside has new messages, which may solve the problem."""
        with suppress(CuelineError):
            if await self._inbox_version(stream) > self._set_aside[stream]:
                del self._set_aside[stream]
        return stream not in self._set_aside

    async def _inbox_version(self, stream: str) -> int:
        return (await self._journal.store.head(sibling(stream, "inbox"))).version

    def _new_loop(self, stream: str) -> SessionLoop:
        entity = Entity(
            stream,
            self.incarnation,
            self._journal,
            self._dependencies.clock,
            report=self._on_trouble,
            read_output=self._dependencies.read_output,
        )
        return SessionLoop(
            entity,
            self._dependencies,
            agent_cache=self._agent_cache,
            breakers=self._breakers,
            alarm=self._alarm,
            slots=self._slots,
        )

    async def _has_news(self, stream: str, loop: SessionLoop) -> bool:
        """Whether a session that has begun to wait has new messages."""
        # Compared after the wait was recorded: a message in between is seen here, nudges the
        # session, or activates it again.
        return await self._inbox_version(stream) > loop.inbox_seen or loop.nudged
