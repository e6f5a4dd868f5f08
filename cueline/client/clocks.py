"""The three clocks of a session: active, waiting and wall (C24).

Active is what its calls took, each counted: the rules fold the same, and
limit it. Waiting is the time in which it rested, for whatever reason; nobody
limits it, each wait has a deadline of its own. Wall is everything since the
start.
"""

from datetime import datetime, timedelta

from cueline.events.fact import Fact
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
)

_TIMED = ModelReplied | ModelFailed | ToolReturned | ToolFailed
_RESTS = SessionWaiting | SessionIdle
_GOES_ON = ModelRequested | SessionContinued | SessionTakenOver
_ENDS = SessionCompleted | SessionFailed | SessionStopped


class Clocks:
    """What they show, told fact by fact; a fork begins anew."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.active_seconds = 0.0
        self._began_at: datetime | None = None
        self._ended_at: datetime | None = None
        self._rests_since: datetime | None = None
        self._waited = timedelta()

    def add(self, fact: Fact, recorded_at: datetime) -> None:
        """Take in one fact."""
        if isinstance(fact, SessionForked):
            self._begin()
        self._began_at = self._began_at or recorded_at
        if isinstance(fact, _TIMED):
            self.active_seconds += fact.seconds
        if isinstance(fact, _RESTS):
            self._rests_since = self._rests_since or recorded_at
        elif isinstance(fact, _GOES_ON | _ENDS):
            self._waited += self._resting(recorded_at)
            self._rests_since = None
        if isinstance(fact, _ENDS):
            self._ended_at = self._ended_at or recorded_at

    def waiting(self, now: datetime) -> float:
        """Return for how many seconds it has rested by *now*."""
        return (self._waited + self._resting(now)).total_seconds()

    def wall(self, now: datetime) -> float:
        """Return how many seconds have passed since the start, up to its end or *now*."""
        if self._began_at is None:
            return 0.0
        return ((self._ended_at or now) - self._began_at).total_seconds()

    def _resting(self, until: datetime) -> timedelta:
        return timedelta() if self._rests_since is None else until - self._rests_since
