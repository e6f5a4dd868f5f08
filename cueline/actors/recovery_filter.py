"""Excludes the sessions that other processes left running."""

from collections.abc import Awaitable, Callable, Collection, Container
from datetime import datetime

from cueline.actors.dispatcher import WorkIndex
from cueline.actors.session_owner import owners_of
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import sibling

Place = Callable[[Collection[str]], Awaitable[None]]


class RecoveryFilter(Container[str]):
    """Contains every session, except the ones that were *left*, until one gets a message."""

    def __init__(self, left: Collection[str], after: int) -> None:
        self._left = set(left)
        self._after = after

    def __contains__(self, stream: object) -> bool:
        return stream not in self._left

    async def follow(self, store: EventStore, place: Place) -> None:
        """Include a session as soon as its inbox gets a message; run without end.

        After an error, call it again: it continues from the same position.
        """
        async for recorded in store.follow(self._after, {"inbox"}):
            self._after = recorded.position
            stream = sibling(recorded.stream, "session")
            if stream in self._left:
                # First: if placing it fails, the dispatcher's tick finds it.
                self._left.discard(stream)
                await place([stream])


async def find_orphans(
    store: EventStore, index: WorkIndex, board: PresenceBoard, *, now: datetime, since: int
) -> list[str]:
    """Return the running sessions that nobody drives, by their last facts.

    Skips sessions with events after the position *since*, at which the caller began: they
    belong to the caller, or were started meanwhile.
    """
    running = await index.driven()
    driven = await owners_of(store, board, running, now)
    return [s for s in running if s not in driven and not await _is_running(store, s, since)]


async def _is_running(store: EventStore, session: str, since: int) -> bool:
    for stream in (session, sibling(session, "inbox")):
        last = (await store.head(stream)).version
        async for recorded in store.read(stream, last - 1):
            if recorded.position > since:
                return True
    return False
