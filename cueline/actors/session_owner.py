"""Finds the owner of a session: for takeover, and for commands that wait for it."""

from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cueline.actors.presence import SILENCE_SECONDS, death_of, find, living, runs_here
from cueline.clock import Clock
from cueline.errors import SessionFinishedError, SessionOwnedError
from cueline.events.store import EventStore, Presence, PresenceBoard
from cueline.events.stream import shown

if TYPE_CHECKING:
    from cueline.deciders.session import SessionState

LOOK_SECONDS = 2.0
"""Time between checks that the owner still lives."""
_ASIDE = ".aside"
_LEFT = ".left"


def set_aside_owner(owner: str) -> str:
    """Return the owner's name that marks a session as set aside by *owner*."""
    return f"{owner}{_ASIDE}"


def left_by(owner: str) -> str:
    """Return the owner's name that marks a session as handed over by *owner*."""
    return f"{owner}{_LEFT}"


def is_left(owner: str | None) -> bool:
    """Whether *owner* is the mark of a handed-over session."""
    return owner is not None and owner.endswith(_LEFT)


def is_aside(owner: str | None) -> bool:
    """Whether *owner* is the mark of a session that was set aside."""
    return owner is not None and owner.endswith(_ASIDE)


def aside_by(owner: str | None) -> str | None:
    """Return the process that set a session aside; None if *owner* is no such mark."""
    return owner.removesuffix(_ASIDE) if owner is not None and is_aside(owner) else None


async def owner_of(
    store: EventStore, board: PresenceBoard, stream: str, now: datetime
) -> Presence | None:
    """Return the living process that acquired *stream* last; None without one."""
    return (await owners_of(store, board, [stream], now)).get(stream)


async def owners_of(
    store: EventStore, board: PresenceBoard, streams: Collection[str], now: datetime
) -> dict[str, Presence]:
    """Return the living processes that acquired *streams* last, by stream."""
    present = {each.incarnation: each for each in await living(board, now)}
    owners = {stream: head.owner for stream, head in (await store.heads(streams)).items()}
    return {stream: present[owner] for stream, owner in owners.items() if owner in present}


async def silent_owner(
    store: EventStore, board: PresenceBoard, stream: str, now: datetime
) -> str | None:
    """Return the local process that drives *stream* without heartbeats, and since when.

    A full disk, for example, stops heartbeats. None without such a process.
    """
    owner = find(await board.all(), (await store.head(stream)).owner)
    return None if owner is None or not runs_here(owner) else death_of(owner, now)


async def next_owner(
    state: "SessionState",
    store: EventStore,
    board: PresenceBoard,
    now: datetime,
    is_here: Callable[[str | None], bool],
) -> Presence | None:
    """Return the living process that took the session over during a call of this process.

    Inline, host and runner are one process. This process was frozen, and the new owner waits
    for the end of the call, which is known once this process ends.
    """
    if not any(call.runner and is_here(call.runner) for call in state.open_calls):
        return None
    owner = await owner_of(store, board, state.stream, now)
    return None if owner is None or is_here(owner.incarnation) else owner


def check_resume(state: "SessionState", unread: Iterable[object], owner: Presence | None) -> None:
    """Refuse to resume a session that has ended, or that its living *owner* drives.

    A session that is paused, or will be after its *unread* messages, stays with the owner,
    and gets the request to resume.

    Raises:
        SessionFinishedError: it has ended; fork it.
        SessionOwnedError: a living process drives it; resume it there.
    """
    from cueline.deciders.session import DRIVEN
    from cueline.deciders.session.messages import will_be_held
    from cueline.events.agent_parts import PROCEDURE

    if state.finished:
        why = f"the session has ended: {state.status}"
        if state.setup is not None and state.agent.provider == PROCEDURE:
            why = f"procedural_agent_no_resume: {why}"
        raise SessionFinishedError(shown(state.stream), why, state.progress is not None)
    if state.status in DRIVEN and owner is not None and not will_be_held(state, unread):
        raise SessionOwnedError(shown(state.stream), owner.machine, owner.pid)


def has_wake_time(state: "SessionState", now: datetime) -> bool:
    """Whether the session waits for a time, at which a host resumes it."""
    until = None if state.waiting is None else state.waiting.deadline_at
    return until is not None and until > now


class OrphanDetector:
    """Detects that no process drives a session.

    It first waits for the time after which a silent process counts as dead: a takeover
    takes a while, and a machine that slept needs time to wake.
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
        """Whether a process will certainly activate the session, unless it was set aside."""
        self._left_since: datetime | None = None
        self._looked_at = clock.now()

    async def orphan_reason(self, *, idle: bool) -> str | None:
        """Return why no process drives the session; None while one does or may soon.

        *idle*: no effect is due, so the session needs no host.
        """
        now = self._clock.now()
        if now - self._looked_at > 2 * timedelta(seconds=LOOK_SECONDS):
            self._left_since = None  # the session may have had an owner since the last look
        self._looked_at = now
        why = None if idle else await self._why_now()
        if why is None:
            self._left_since = None
            return None
        self._left_since = self._left_since or now
        return None if now - self._left_since < timedelta(seconds=SILENCE_SECONDS) else why

    async def _why_now(self) -> str | None:
        name = (await self._store.head(self._stream)).owner
        if name is not None and is_aside(name):
            return f"{name.removesuffix(_ASIDE)} has set it aside"
        if self._taken_up():
            return None
        if name is None:
            return "nobody has taken it up yet"
        owner = find(await self._board.all(), name)
        return f"{name} has left it" if owner is None else death_of(owner, self._clock.now())
