"""What others left running, where it is to be left alone."""

from collections.abc import Awaitable, Callable, Collection, Container
from datetime import datetime

from cueline.actors.dispatcher import WorkIndex
from cueline.actors.session_owner import owners_of
from cueline.events.store import EventStore, PresenceBoard
from cueline.events.stream import sibling

Place = Callable[[Collection[str]], Awaitable[None]]


class RecoveryFilter(Container[str]):
    """Every session but those that were *left*, until somebody has a word for one."""

    def __init__(self, left: Collection[str], after: int) -> None:
        self._left = set(left)
        self._after = after

    def __contains__(self, stream: object) -> bool:
        return stream not in self._left

    async def follow(self, store: EventStore, place: Place) -> None:
        """Care for a session once something comes into its inbox, for ever.

        Called again after a failure, it goes on where it was.
        """
        async for recorded in store.follow(self._after, {"inbox"}):
            self._after = recorded.position
            stream = sibling(recorded.stream, "session")
            if stream in self._left:
                # First: where placing it fails, whoever looks for work finds it.
                self._left.discard(stream)
                await place([stream])


async def find_orphans(
    store: EventStore, index: WorkIndex, board: PresenceBoard, *, now: datetime, since: int
) -> list[str]:
    """Return the sessions that run, as their last facts say, and that nobody drives.

    Not one of which anything was recorded after the position *since*, when
    whoever asks began: it was theirs, or was asked for meanwhile.
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
