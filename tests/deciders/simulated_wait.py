"""What a simulated shell records where an effect has to wait."""

from datetime import datetime, timedelta

from cueline.deciders.session.wait import task_cause
from cueline.events.codes import Cause
from cueline.events.session import SessionWaiting

RUNNER_SECONDS = 600.0
BREAKER_SECONDS = 60.0


def wait_for_runner(effect: str, now: datetime) -> SessionWaiting:
    """Return the fact of a tool call whose runner cannot be reached."""
    return SessionWaiting(
        kind="runner",
        cause=Cause(code="runner_unreachable"),
        deadline_at=now + timedelta(seconds=RUNNER_SECONDS),
        effects=(effect,),
    )


def wait_for_task(tool: str, effect: str, again: datetime) -> SessionWaiting:
    """Return the fact of a task that goes on."""
    return SessionWaiting(kind="task", cause=task_cause(tool), deadline_at=again, effects=(effect,))


def wait_for_breaker(effect: str, now: datetime, *, reserved: bool) -> SessionWaiting:
    """Return the fact of an effect that an open breaker keeps back."""
    return SessionWaiting(
        kind="breaker",
        cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
        deadline_at=now + timedelta(seconds=BREAKER_SECONDS),
        effects=(effect,),
        reserved=reserved,
    )
