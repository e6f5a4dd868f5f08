"""Buffers messages of an actor for a caller with a long poll."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Generic, TypeVar

What = TypeVar("What")


class NotificationBuffer(Generic[What]):
    """Keeps messages until they are read; at most the last *most*."""

    def __init__(self, most: int | None = None) -> None:
        self._things: deque[What] = deque(maxlen=most)
        self._some = asyncio.Event()

    def add(self, thing: What) -> None:
        """Add a message."""
        self._things.append(thing)
        self._some.set()

    async def take(self, seconds: float) -> list[What]:
        """Wait for messages, and return all; empty after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        self._some.clear()
        told = list(self._things)
        self._things.clear()
        return told
