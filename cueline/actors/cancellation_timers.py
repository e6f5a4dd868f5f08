"""How long an effect may go on that a stop or a signal is going to end."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from cueline.clock import Clock
from cueline.deciders.session import SessionState, due
from cueline.deciders.session.due import Cancel
from cueline.events.stream import is_model_call

GRACE_SECONDS = 5.0
"""What is in flight may finish, before it is cancelled."""


_NOTHING: frozenset[Cancel] = frozenset()
_UNTIMED: Mapping[Cancel, datetime] = MappingProxyType({})


class CancellationTimers:
    """What is about to be ended, and until when it may still end by itself."""

    __slots__ = ("_clock", "_ended", "_seconds", "_until")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until = _UNTIMED
        self._ended = _NOTHING

    @property
    def until(self) -> datetime | None:
        """When the next grace is over."""
        left = [moment for cancel, moment in self._until.items() if cancel not in self._ended]
        return min(left, default=None)

    def over(self, state: SessionState) -> list[Cancel]:
        """Return what has to be ended now, each once; who is not to be ended any more is spared."""
        wanted = _wanted(state)
        if not wanted and not self._until:
            return []
        now = self._clock.now()
        self._until = {
            cancel: self._until.get(cancel) or now + self._grace(state, cancel) for cancel in wanted
        }
        over = [c for c, moment in self._until.items() if moment <= now and c not in self._ended]
        self._ended = self._ended.intersection(wanted).union(over)
        return over

    def _grace(self, state: SessionState, cancel: Cancel) -> timedelta:
        """Return how long: a stop waits for tools alone, a signal for the model too."""
        waits = state.stop is None or not is_model_call(cancel.effect)
        return timedelta(seconds=self._seconds if waits else 0)


def _wanted(state: SessionState) -> list[Cancel]:
    if state.stop is not None:
        return [effect for effect in due(state) if isinstance(effect, Cancel)]
    model = state.turn.model
    signalled = state.hold is not None and state.hold.cause.code == "signal"
    if signalled and model is not None and model.phase == "started":
        return [Cancel(model.effect, model.attempt)]
    return []
