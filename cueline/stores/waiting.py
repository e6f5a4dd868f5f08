"""Waits of stores: for other tasks, for locks, and for notifications."""

import asyncio
import types
from collections.abc import Generator


@types.coroutine
def take_turns() -> Generator[None]:
    """Let the event loop's other tasks run once."""
    yield


async def pause(seconds: float) -> None:
    """Wait in real time, not by the store's clock, because other processes use real time, too."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    timer = loop.call_later(seconds, over.set_result, None)
    try:
        await over
    finally:
        timer.cancel()


class Notifier:
    """Wakes all who wait, each time that `ring` is called, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[None], None] = {}

    def ring(self) -> None:
        """Wake all current waiters."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def wait(self) -> None:
        """Wait for the next ring."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        try:
            await future
        finally:
            self._waiting.pop(future, None)
