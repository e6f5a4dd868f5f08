"""Limits how often each caller may ask: a bucket for each, which fills with time."""

import math
from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import Final

_MOST_CALLERS: Final = 10_000
"""The callers that are remembered; whoever has not asked for longest is forgotten first."""


class RateLimit:
    """At most a number of requests at once, and so many more a second, for each caller."""

    def __init__(
        self, *, most: float, per_second: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._most, self._per_second, self._clock = most, per_second, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Count a request; return the seconds to wait if it is one too many, else 0."""
        now = self._clock()
        left, then = self._left.pop(caller, (self._most, now))
        left = min(self._most, left + (now - then) * self._per_second)
        allowed = left >= 1
        self._left[caller] = (left - allowed, now)
        if len(self._left) > _MOST_CALLERS:
            self._left.popitem(last=False)
        return 0 if allowed else math.ceil((1 - left) / self._per_second)
