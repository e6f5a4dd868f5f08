"""The times of heartbeats; a file of settings and every command need them."""

from typing import Final, NamedTuple


class HeartbeatTimes(NamedTuple):
    """The times of a runner's heartbeats and of its removal, in seconds."""

    interval: float = 30.0
    """The time between two heartbeats."""
    stale: float = 120.0
    """The silence after which a runner gets no more runs."""
    removal: float = 600.0
    """The silence after which a runner is removed."""


HEARTBEAT: Final = HeartbeatTimes()
"""The default times of heartbeats."""
