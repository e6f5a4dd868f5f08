"""The waits before a session's work starts: for its time, for admission, and for a runner.

No effect of a run starts before a runner has claimed the run. If the blueprint has
`max_running`, the run first waits to be admitted, without a deadline.
The wait for a runner begins when the run's host finds none; the deadline counts from
then, because the run may have had no host for hours.
A run whose runner is removed fails; after a graceful leave the run is queued again,
unless a call that must not be repeated may be running.
"""

from datetime import datetime

from msgspec.structs import replace

from cueline.deciders.session.children import with_stop
from cueline.deciders.session.state import RunState, SessionState, Stop
from cueline.events.inbox import RunnerGone
from cueline.events.session import RunClaimed, SessionContinued, SessionFailed
from cueline.events.start import DISCONNECTED, NO_RUNNER, Run, Schedule, time_after
from cueline.events.status import Status

_MESSAGES = {"no_matching_runner": NO_RUNNER, "runner_disconnected": DISCONNECTED}


def run_state(run: Run | None) -> RunState | None:
    """Return the run state at the start of a session; None if the session is no run."""
    return None if run is None else RunState(run.blueprint, run.queue_seconds)


def run_claimed(state: SessionState, event: RunClaimed) -> SessionState:
    """Return *state* of a run that a runner claimed."""
    if state.run is None:
        return state
    claimed = replace(state.run, runner=event.runner, until=None, max_running=0)
    status = Status.RUNNING if state.status is Status.WAITING else state.status
    return replace(state, run=claimed, status=status, waiting=None)


def claimed_by(state: SessionState) -> str:
    """Return the runner that claimed the run; empty without a claim."""
    return state.run.runner if state.run is not None else ""


def runner_gone(state: SessionState, message: RunnerGone) -> SessionState:
    """Return *state* of a run that is queued again or failed, if its own runner is gone."""
    run = state.run
    if run is None or run.runner != message.runner:
        return state
    if not message.graceful or state.stop is not None or _may_be_cut(state):
        return with_stop(state, Stop("system", "runner_disconnected"))
    return replace(state, run=replace(run, runner=""))


def _may_be_cut(state: SessionState) -> bool:
    """Whether a call that must not be repeated may have been cut off."""
    return any(c.phase in ("started", "in_doubt") and not c.repeatable for c in state.open_calls)


def run_admitted(state: SessionState) -> SessionState:
    """Return *state* of an admitted run, which then waits for a runner."""
    if state.run is None:
        return state
    return replace(state, run=replace(state.run, admitted=True, max_running=0))


def queue_passed(state: SessionState, event: SessionContinued) -> SessionState:
    """Return *state* after the wait for a runner: a longer wait for a stale runner, or the end."""
    run, at = state.run, event.at
    if run is None or run.runner or state.stop is not None:
        return state
    if event.max_running and not run.admitted:
        return replace(state, run=replace(run, max_running=event.max_running, until=None))
    if event.queued_until is not None:
        return replace(state, run=replace(run, until=event.queued_until))
    if run.until is None or at is None or run.until > at:
        return state
    return with_stop(state, Stop("system", "no_matching_runner"))


def stop_failure(stop: Stop) -> SessionFailed:
    """Return the end of a session that stops because of a failure."""
    return SessionFailed(
        kind=stop.code, message=_MESSAGES.get(stop.code, ""), approval=stop.approval
    )


def start_passed(state: SessionState, at: datetime | None) -> SessionState:
    """Return *state* of a session whose start time has come; unchanged if it is held or stopped.

    Wall time counts from the start time.
    """
    schedule = state.schedule
    if schedule is None or at is None or at < schedule.at or state.hold or state.stop:
        return state
    limit_state = state.limit_state
    if limit_state.limits.max_wall_seconds is not None:
        limit_state = replace(limit_state, began_at=at, seen_at=at)
    return replace(state, schedule=None, limit_state=limit_state)


def next_in_series(before: SessionState, after: SessionState, now: datetime) -> Schedule | None:
    """Return the schedule of the series' next session, if the work starts in *after*; else None.

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
