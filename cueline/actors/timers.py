"""Wakes the waiters of a host at their times, and ends the grace of cancelled effects."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from cueline.clock import Clock
from cueline.deciders.session import SessionState, due
from cueline.deciders.session.due import Cancel
from cueline.events.stream import is_model_call

Waiting = asyncio.Future[None]


class Timers:
    """One timer for all sessions of a host; a task for each would take 0.9 KB.

    Each wake-up checks all waiters, 10,000 at most, in half a millisecond.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: dict[Waiting, datetime] = {}
        self._next: datetime | None = None
        self._task: asyncio.Task[None] | None = None

    def set(self, waiting: Waiting, moment: datetime) -> None:
        """Finish *waiting* at *moment*, unless it is dropped earlier."""
        self._moments[waiting] = moment
        if self._next is None or moment < self._next:
            self.close()
            self._next = moment
            self._task = asyncio.create_task(self._run())

    def drop(self, waiting: Waiting) -> None:
        """Remove *waiting*."""
        self._moments.pop(waiting, None)

    def close(self) -> None:
        """Stop the timer; it wakes no more waiters."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._next is not None:
            seconds = (self._next - self._clock.now()).total_seconds()
            await self._clock.sleep(max(0.0, seconds))
            self._wake(self._clock.now())
            self._next = min(self._moments.values(), default=None)

    def _wake(self, now: datetime) -> None:
        for waiting in [each for each, moment in self._moments.items() if moment <= now]:
            del self._moments[waiting]
            if not waiting.done():
                waiting.set_result(None)


_NOTHING: frozenset[Cancel] = frozenset()
_UNTIMED: Mapping[Cancel, datetime] = MappingProxyType({})


class CancellationTimers:
    """The effects that will be cancelled, with their times."""

    __slots__ = ("_clock", "_ended", "_seconds", "_until", "until")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until = _UNTIMED
        self._ended = _NOTHING
        self.until: datetime | None = None
        """The earliest end of a grace period, as of the last `over`."""

    def over(self, state: SessionState) -> list[Cancel]:
        """Return the due cancellations, each once; drop the unneeded ones."""
        wanted = _wanted(state)
        if not wanted and not self._until:
            return []
        now = self._clock.now()
        self._until = {
            cancel: self._until.get(cancel) or now + self._grace(state, cancel) for cancel in wanted
        }
        over = [c for c, moment in self._until.items() if moment <= now and c not in self._ended]
        self._ended = self._ended.intersection(wanted).union(over)
        left = [moment for cancel, moment in self._until.items() if cancel not in self._ended]
        self.until = min(left, default=None)
        return over

    def _grace(self, state: SessionState, cancel: Cancel) -> timedelta:
        """Return the grace period: a stop gives one only to tools, a signal also to the model."""
        waits = state.stop is None or not is_model_call(cancel.effect)
        return timedelta(seconds=self._seconds if waits else 0)


def _wanted(state: SessionState) -> list[Cancel]:
    if state.stop is not None:
        return [effect for effect in due(state) if isinstance(effect, Cancel)]
    model = state.turn.model
    signalled = state.hold is not None and state.hold.cause.code == "signal"
    if signalled and model is not None and model.phase == "started":
        return [Cancel(model.effect, model.attempt)]
    return []
