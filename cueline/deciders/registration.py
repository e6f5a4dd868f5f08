"""Which registered runners become stale, are back, or are removed.

A heartbeat is no event: only a change is one.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from cueline.deciders.fleet import FleetState
from cueline.events.fleet import RunnerBack, RunnerRemoved, RunnerStale

Change = RunnerStale | RunnerBack | RunnerRemoved


class HeartbeatTimes(NamedTuple):
    """The times by which runners are registered, in seconds."""

    interval: float = 30.0
    """Between two heartbeats."""
    stale: float = 120.0
    """A runner that is silent for so long gets no more runs."""
    removal: float = 600.0
    """A runner that is silent for so long is removed."""


HEARTBEAT: Final = HeartbeatTimes()
"""The default times."""


def changes(
    state: FleetState,
    beats: Mapping[str, datetime],
    now: datetime,
    *,
    since: datetime,
    times: HeartbeatTimes,
) -> list[Change]:
    """Return what is to be recorded of the registered runners *now*.

    Args:
        state: the fleet's.
        beats: the last heartbeat of each runner, by incarnation.
        now: the time.
        since: when somebody began to listen; an earlier silence counts for nothing.
        times: see `HeartbeatTimes`.
    """
    found: list[Change] = []
    for incarnation, runner in state.runners.items():
        beat = beats.get(incarnation)
        heard = since if beat is None else max(beat, since)
        silent = (now - heard).total_seconds()
        said: dict[str, Any] = {"incarnation": incarnation, "epoch": state.epoch, "at": now}
        why = f"it is silent for {silent:.0f} s"
        is_stale = runner.removed_at is not None
        if silent >= times.removal:
            found.append(RunnerRemoved(reason=why, **said))
        elif not is_stale and silent >= times.stale:
            until = heard + timedelta(seconds=times.removal)
            found.append(RunnerStale(reason=why, removed_at=until, **said))
        elif is_stale and beat is not None and (now - beat).total_seconds() < times.stale:
            found.append(RunnerBack(**said))
    return found
