"""Whoever waits for a session to go on: the log is looked at once for all of them."""

import asyncio
from collections.abc import AsyncGenerator, Iterable

from cueline.events.store import EventStore


class Lookout:
    """Follows the log of one process, as long as anybody waits for a session of it.

    If each followed the log alone, all would read what happens to all others.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._bells: dict[str, set[asyncio.Event]] = {}
        """Of those who wait, by stream."""
        self._follows = False
        """Whether it follows already: what comes before that rings no bell."""
        self._looking: asyncio.Task[None] | None = None

    async def grows(self, stream: str) -> AsyncGenerator[None]:
        """Say when *stream* may have more to read: at once, and whenever it has, for ever.

        Raises:
            StoreError: the log cannot be read.
        """
        bell = asyncio.Event()
        self._bells.setdefault(stream, set()).add(bell)
        looking = self._begin()
        try:
            while not looking.done():
                # What comes from here on rings again.
                bell.clear()
                if self._follows:
                    yield
                await bell.wait()
            looking.result()
        finally:
            self._bells[stream].discard(bell)
            if not self._bells[stream]:
                del self._bells[stream]
            if not self._bells and self._looking is not None:
                # Not the one that was waited for: that may have failed, and another come.
                self._looking.cancel()
                self._looking = None

    def _begin(self) -> "asyncio.Task[None]":
        if self._looking is None or self._looking.done():
            self._follows = False
            self._looking = asyncio.create_task(self._look())
        return self._looking

    async def _look(self) -> None:
        try:
            position = await self._store.last_position()
            self._follows = True
            self._ring(self._bells)
            async for recorded in self._store.follow(position, {"session"}):
                self._ring([recorded.stream])
        finally:
            self._ring(self._bells)

    def _ring(self, streams: Iterable[str]) -> None:
        for stream in streams:
            for bell in self._bells.get(stream, ()):
                bell.set()
