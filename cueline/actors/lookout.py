"""Whoever waits for a session to go on: the log is looked at once for all of them."""

import asyncio
from collections.abc import AsyncGenerator, Collection

from cueline.events.store import EventStore


class Lookout:
    """Follows the log of one process, as long as anybody waits for a session of it.

    If each followed the log alone, all would read what happens to all others.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._bells: dict[str, dict[asyncio.Event, Collection[str]]] = {}
        """Of those who wait, by stream, and the types of events that do not ring them."""
        self._follows = False
        """Whether it follows already: what comes before that rings no bell."""
        self._looking: asyncio.Task[None] | None = None

    async def grows(self, stream: str, but: Collection[str] = ()) -> AsyncGenerator[None]:
        """Say when *stream* may have more to read: at once, and whenever it has, for ever.

        Events of the types *but* are not worth a look.

        Raises:
            StoreError: the log cannot be read.
        """
        bell = asyncio.Event()
        self._bells.setdefault(stream, {})[bell] = but
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
            del self._bells[stream][bell]
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
            self._ring_all()
            async for recorded in self._store.follow(position, {"session"}):
                for bell, but in self._bells.get(recorded.stream, {}).items():
                    if recorded.type not in but:
                        bell.set()
        finally:
            self._ring_all()

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.set()
