"""A clock that stands still until a test moves it."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count

from cueline.stores.waiting import take_turns

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MANY_TURNS = 200_000
"""Tasks that are not done after so many passes of the loop are in an endless loop."""


class FakeClock:
    """See `Clock`. Sleepers wake in order, and each runs until it waits before the next wakes.

    Use it if all work runs in the event loop: on a `MemoryStore`, with fakes at the other
    ports.
    """

    def __init__(self, now: datetime = NOON) -> None:
        self._now = now
        self._numbers = count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        until = self._now + timedelta(seconds=max(0.0, seconds))
        heappush(self._sleepers, (until, next(self._numbers), woken))
        await woken

    @property
    def next_at(self) -> datetime | None:
        """The time at which the next sleeper wakes."""
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)  # it was cancelled
        return self._sleepers[0][0] if self._sleepers else None

    async def advance(self, seconds: float) -> None:
        """Move the clock by *seconds*, and run all tasks that are due by then."""
        until = self._now + timedelta(seconds=seconds)
        await self.settle()
        while (moment := self.next_at) is not None and moment <= until:
            self._now = max(self._now, moment)
            heappop(self._sleepers)[2].set_result(None)
            await self.settle()
        self._now = until

    async def settle(self) -> None:
        """Run all tasks that can run without moving the clock."""
        ready = asyncio.get_running_loop()._ready  # type: ignore[attr-defined]  # noqa: SLF001 - nothing public tells whether the loop has anything left to do
        for _ in range(MANY_TURNS):
            await take_turns()
            if not ready:
                return
        raise AssertionError("somebody goes round in circles")

    async def run_until(self, condition: Callable[[], object], within: float = 0.0) -> None:
        """Return as soon as *condition* holds; move the clock by up to *within* seconds.

        Raises:
            AssertionError: the condition does not hold by then.
        """
        until = self._now + timedelta(seconds=within)
        await self.settle()
        while not condition():
            moment = self.next_at
            assert moment is not None and moment <= until, "it does not come about"  # noqa: PT018 - one question
            await self.advance((moment - self._now).total_seconds())
