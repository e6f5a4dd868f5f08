"""Claims a run for a runner, or queues it; for the run's host."""

from datetime import datetime, timedelta

from cueline.actors.fleet_log import FleetLog
from cueline.deciders.session import SessionState
from cueline.events.session import RunClaimed, SessionContinued, SessionEvent


async def claims(fleet: FleetLog, state: SessionState, now: datetime) -> list[SessionEvent]:
    """Return the claim of a queued run by the runner that offers its blueprint now.

    Without such a runner, the run gets a deadline, if it has none. A run that has to be admitted
    first waits without a deadline.
    """
    run = state.run
    if run is None or state.stop is not None:
        return []
    seen = await fleet.read()
    if runner := seen.online(run.blueprint):
        most = seen.blueprints[run.blueprint].agent.max_running
        if most is None or run.admitted:
            return [RunClaimed(runner=runner)]
        return [SessionContinued(by="work", at=now, max_running=most)]
    if run.max_running:
        return []
    until = now + timedelta(seconds=run.queue_seconds)
    return [SessionContinued(by="work", at=now, queued_until=until)] if run.until is None else []


async def queue_end(fleet: FleetLog, state: SessionState, now: datetime) -> list[SessionEvent]:
    """Return the end of a run's wait for a runner; nothing if one claims it now.

    The run waits for a stale runner until the runner is removed (C32).
    """
    assert state.run is not None, "only a run waits for one"
    seen = await fleet.read()
    if seen.online(state.run.blueprint):
        return []
    until = seen.removal_of(state.run.blueprint)
    later = until if until is not None and until > now else None
    return [SessionContinued(by="deadline", at=now, queued_until=later)]
