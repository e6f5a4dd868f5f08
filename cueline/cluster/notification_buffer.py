"""What an actor has to tell: kept until somebody asks, who hangs until there is something."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

What = TypeVar("What")


class NotificationBuffer(Generic[What]):
    """Things that nobody has heard yet; the last *most* of them, if that is given."""

    def __init__(self, most: int | None = None) -> None:
        self._things: deque[What] = deque(maxlen=most)
        self._some = asyncio.Event()

    def add(self, thing: What) -> None:
        """Have it told to whoever asks."""
        self._things.append(thing)
        self._some.set()

    async def take(self, seconds: float) -> list[What]:
        """Return them once there are any; none after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        self._some.clear()
        told = list(self._things)
        self._things.clear()
        return told
