"""Notifies the waiters of a process of new events; one loop reads the log for all."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Sequence

from cueline.events.store import EventStore, RecordedEvent

HEARD = 16
"""The most new events that a slow waiter gets."""


class _Subscriber:
    """One waiter for the events of a stream."""

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
    """Follows the log while a task of this process waits for a session.

    If each waiter followed the log separately, each would read the events of all streams.
    """

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._bells: dict[str, set[_Subscriber]] = {}
        """The waiters, by stream."""
        self._follows = False
        """Whether it is following the log; earlier events notify no waiters."""
        self._looking: asyncio.Task[None] | None = None

    async def changes(
        self, stream: str, but: Collection[str] = ()
    ) -> AsyncGenerator[Sequence[RecordedEvent]]:
        """Yield whenever *stream* may have new events: at once, then after each append.

        Yields its newest events without a gap, so that the caller does not read them again;
        empty if they are unknown. Events of the types in *but* are ignored; with *but*, no events
        are yielded.

        Raises:
            StoreError: the log cannot be read.
        """
        bell = _Subscriber(but)
        self._bells.setdefault(stream, set()).add(bell)
        looking = self._begin()
        try:
            while not looking.done():
                # Events from here on notify again.
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
                # Not the task that was awaited: it may have failed and been replaced.
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
