"""For what a session waits, as a reader is told of it."""

from decimal import Decimal

import pytest

from cueline.console.text import date_time
from cueline.events.codes import Cause
from cueline.events.session import SessionWaiting
from tests.console.told import NOW, told

PENDING = Cause(code="approval_pending", approvals=("one.1.0.1",))
TURNS = Cause(code="limit_reached", limit="max_turns", of=Decimal(3))


def test_a_breaker_is_told_with_its_time(telling):
    cause = Cause(code="breaker_open", dependency="it", failure="timeout")
    waiting = SessionWaiting(kind="breaker", cause=cause, deadline_at=NOW)

    said = f"breaker open until {date_time(NOW)}: it keeps failing (timeout)"
    assert [said] == told(telling, waiting)


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        ({"kind": "approval", "cause": PENDING}, "waiting for approval one.1.0.1"),
        ({"kind": "operator", "cause": Cause(code="asked")}, "paused on request"),
        ({"kind": "operator", "cause": Cause(code="signal")}, "paused by Ctrl-C or a signal"),
        (
            {"kind": "budget", "cause": TURNS, "exhausted": True},
            "paused: limit: 3 turns since the last message",
        ),
    ],
)
def test_a_wait_for_a_person_ends_at_no_time_of_its_own(telling, waits, said):
    assert [said] == told(telling, SessionWaiting(**waits, deadline_at=NOW))


def test_a_wait_that_ends_by_itself_is_told_with_its_time(telling):
    cause = Cause(code="runner_unreachable")
    waiting = SessionWaiting(kind="runner", cause=cause, deadline_at=NOW)

    said = f"waiting for a runner until {date_time(NOW)}: no runner can be reached"
    assert [said] == told(telling, waiting)
