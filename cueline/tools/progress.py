"""Passes on what a tool says of its progress while it runs; nothing of it is recorded."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

MOST_A_SECOND: Final = 10
LONGEST: Final = 200
"""The most characters of a text."""

Report = Callable[[float | None, str], None]
"""Takes the done share of the work, from 0 to 1 or None, and a text."""


def drop_progress(share: float | None, text: str) -> None:
    """Pass nothing on: nobody watches, or the call has ended."""


def share_of(share: object) -> float | None:
    """Return *share* from 0 to 1; None if it is no number."""
    if not isinstance(share, int | float) or share != share:  # noqa: PLR0124 - NaN
        return None
    return min(max(float(share), 0.0), 1.0)


def _copy() -> Report:
    return drop_progress


class ProgressReporter:
    """The reporter of one call, for any thread of its process.

    It drops what comes too often, after the end of the call, and from other processes. A copy
    for another process drops all.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._times: deque[float] = deque(maxlen=MOST_A_SECOND)
        """When the last were passed on."""

    def __call__(self, share: float | None, text: str) -> None:
        """Pass on the progress; it never waits."""
        # A fork may have copied a lock that nobody releases.
        if os.getpid() != self._process or not self._lock.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if len(self._times) < MOST_A_SECOND or now - self._times[0] >= 1:
                self._times.append(now)
                self._report(share_of(share), text[:LONGEST])
        finally:
            self._lock.release()

    def __reduce__(self) -> tuple[Callable[[], Report], tuple[()]]:
        """Return what a copy is made of."""
        return _copy, ()

    def end(self) -> None:
        """Pass nothing on any more: what is written next is the result of the call."""
        with self._lock:
            self._report = drop_progress
