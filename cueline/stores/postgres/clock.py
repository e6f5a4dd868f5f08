"""The time of a log in PostgreSQL."""

from cueline.clock import Clock, SystemClock
from cueline.events.store import to_us


def clock_us(clock: Clock) -> int | None:
    """Return the time to record; None for the server's, which all machines share."""
    return None if isinstance(clock, SystemClock) else to_us(clock.now())
