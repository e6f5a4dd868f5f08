"""Grace periods of effects that a stop or a signal will cancel."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from cueline.clock import Clock
from cueline.deciders.session import SessionState, due
from cueline.deciders.session.due import Cancel
from cueline.events.stream import is_model_call

_NOTHING: frozenset[Cancel] = frozenset()
_UNTIMED: Mapping[Cancel, datetime] = MappingProxyType({})


class CancellationTimers:
    """The effects that will be cancelled, with their times."""

    __slots__ = ("_clock", "_ended", "_seconds", "_until", "until")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until = _UNTIMED
        self._ended = _NOTHING
        self.until: datetime | None = None
        """The earliest end of a grace period, as of the last `over`."""

    def over(self, state: SessionState) -> list[Cancel]:
        """Return the due cancellations, each once; drop the unneeded ones."""
        wanted = _wanted(state)
        if not wanted and not self._until:
            return []
        now = self._clock.now()
        self._until = {
            cancel: self._until.get(cancel) or now + self._grace(state, cancel) for cancel in wanted
        }
        over = [c for c, moment in self._until.items() if moment <= now and c not in self._ended]
        self._ended = self._ended.intersection(wanted).union(over)
        left = [moment for cancel, moment in self._until.items() if cancel not in self._ended]
        self.until = min(left, default=None)
        return over

    def _grace(self, state: SessionState, cancel: Cancel) -> timedelta:
        """Return the grace period: a stop gives one only to tools, a signal also to the model."""
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
