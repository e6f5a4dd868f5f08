"""The wait of a session for the time at which it starts its work."""

from datetime import datetime

from msgspec.structs import replace

from cueline.deciders.session.state import SessionState, Status
from cueline.events.schedule import Schedule, time_after


def start_passed(state: SessionState, at: datetime | None) -> SessionState:
    """Start the work if its time has come; a session that is paused or stopped does not.

    Wall time counts from here.
    """
    schedule = state.schedule
    if schedule is None or at is None or at < schedule.at or state.hold or state.stop:
        return state
    limit_state = state.limit_state
    if limit_state.limits.max_wall_seconds is not None:
        limit_state = replace(limit_state, began_at=at, seen_at=at)
    return replace(state, schedule=None, limit_state=limit_state)


def next_in_series(before: SessionState, after: SessionState, now: datetime) -> Schedule | None:
    """Return when the next session of the series starts, if this one's work starts in between.

    A stop in the same append ends the series.
    """
    schedule = before.schedule
    if schedule is None or after.schedule is not None:
        return None
    if after.stop is not None or after.status is Status.STOPPED:
        return None
    at = time_after(schedule, now)
    first = schedule.first or before.stream
    return None if at is None else schedule.model_copy(update={"at": at, "first": first})
