"""Whoever waits for a session to go on: the log is looked at once for all of them."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence

from cueline.events.store import EventStore, RecordedEvent

HEARD = 16
"""So many of the newest events of its session each waiter is handed, however slow it is."""


class _Subscriber:
    """Of one who waits."""

    def __init__(self, but: Collection[str]) -> None:
        self.rung = asyncio.Event()
        self.but = but
        self.heard: deque[RecordedEvent] = deque(maxlen=HEARD)

    def hear(self, recorded: RecordedEvent) -> None:
        if recorded.type not in self.but:
            self.rung.set()
        if not self.but:
            self.heard.append(recorded)


class StreamNotifier:
    """Follows the log of one process, as long as anybody waits for a session of it.

    If each followed the log alone, all would read what happens to all others.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._bells: dict[str, set[_Subscriber]] = {}
        """Of those who wait, by stream."""
        self._follows = False
        """Whether it follows already: what comes before that rings no bell."""
        self._looking: asyncio.Task[None] | None = None

    async def changes(
        self, stream: str, but: Collection[str] = ()
    ) -> AsyncGenerator[Sequence[RecordedEvent]]:
        """Say when *stream* may have more to read: at once, and whenever it has, for ever.

        Yields its newest events, as they were read here, so that they need not be read again:
        none or a few, without a gap. Events of the types *but* are not worth a look, and none
        are handed to who names some.

        Raises:
            StoreError: the log cannot be read.
        """
        bell = _Subscriber(but)
        self._bells.setdefault(stream, set()).add(bell)
        looking = self._begin()
        try:
            while not looking.done():
                # What comes from here on rings again.
                bell.rung.clear()
                if self._follows:
                    yield tuple(bell.heard)
                await bell.rung.wait()
            looking.result()
        finally:
            self._bells[stream].remove(bell)
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
                for bell in self._bells.get(recorded.stream, ()):
                    bell.hear(recorded)
        finally:
            self._ring_all()

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.rung.set()
