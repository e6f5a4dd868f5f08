"""Who has a session: whoever takes it over, or waits for it, has to know."""

from collections.abc import Callable
from datetime import datetime, timedelta

from cueline.actors.presence import SILENCE_SECONDS, death_of, find
from cueline.clock import Clock
from cueline.deciders.session import DRIVEN, SessionState
from cueline.errors import SessionFinishedError, SessionOwnedError
from cueline.events.store import EventStore, Presence, PresenceBoard, from_us
from cueline.events.stream import shown

LOOK_SECONDS = 2.0
"""How often to see whether what drives a session is still there."""


async def owner_of(
    store: EventStore, board: PresenceBoard, stream: str, now: datetime
) -> Presence | None:
    """Return the living process that acquired *stream* last."""
    presence = find(await board.all(), (await store.head(stream)).owner)
    return None if presence is None or death_of(presence, now) is not None else presence


def check_takeover(state: SessionState, owner: Presence | None) -> None:
    """Refuse to take over what has ended, or what its living *owner* drives.

    Raises:
        SessionFinishedError: it has ended; fork it.
        SessionOwnedError: a living process drives it; ask that one.
    """
    if state.finished:
        raise SessionFinishedError(shown(state.stream), f"the session has ended: {state.status}")
    if state.status in DRIVEN and owner is not None:
        raise SessionOwnedError(shown(state.stream), owner.machine, owner.pid)


class Vigil:
    """Watches whether anybody goes on with one session.

    Between the death of who drove it and a takeover there is a while, which is
    no news: nobody drives a session that nobody has driven for as long as it
    takes to count as dead.
    """

    def __init__(
        self,
        stream: str,
        store: EventStore,
        board: PresenceBoard,
        clock: Clock,
        *,
        taken_up: Callable[[], bool],
    ) -> None:
        self._stream = stream
        self._store = store
        self._board = board
        self._clock = clock
        self._taken_up = taken_up
        """Whether somebody takes it up for certain."""
        self._met = False
        """Whether somebody was seen to drive it."""
        self._left_since: datetime | None = None

    async def why_left(self) -> str | None:
        """Return why nobody drives the session any more; None while somebody does, or may soon."""
        if self._taken_up():
            self._met, self._left_since = True, None
            return None
        now = self._clock.now()
        name = (await self._store.head(self._stream)).owner
        owner = find(await self._board.all(), name)
        end = None if owner is None else death_of(owner, now)
        if owner is not None and end is None:
            self._met, self._left_since = True, None
            return None
        if self._left_since is None:
            self._left_since = now if owner is None else from_us(owner.beat_us)
            if self._met:
                return None  # the machine may have slept: who lives beats first
        if now - self._left_since < timedelta(seconds=SILENCE_SECONDS):
            return None
        return end or ("nobody has taken it up yet" if name is None else f"{name} has left it")
