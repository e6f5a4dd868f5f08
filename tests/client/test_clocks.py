"""The three clocks (C24)."""

from datetime import UTC, datetime, timedelta

from cueline.events.codes import Cause
from cueline.events.session import SessionContinued, SessionIdle, SessionStopped, SessionWaiting
from cueline.projections.summary import Summary
from tests.session_example import broken, failing, returned, saying, started

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def at(minutes):
    return NOW + timedelta(minutes=minutes)


def clocks(*told):
    read = Summary()
    for minutes, fact in told:
        read = read.after(fact, at(minutes))
    return read


def test_active_is_what_calls_took_each_counted():
    timed = [
        (1, saying("look", seconds=5)),
        (2, returned("1.0", seconds=7)),
        (3, failing("overloaded").model_copy(update={"seconds": 11})),
        (4, broken("1.1", "tool_error").model_copy(update={"seconds": 13})),
    ]

    assert 36 == clocks((0, started()), *timed).active_seconds


# 003-007: each is told for itself.
def test_waiting_is_the_time_at_rest_and_goes_on():
    read = clocks(
        (0, started()),
        (1, SessionWaiting(kind="approval", cause=Cause(code="approval_pending"))),
        (3, SessionWaiting(kind="operator", cause=Cause(code="asked"))),
        (6, SessionContinued(by="message")),
        (10, SessionIdle()),
    )

    assert 5 * 60 == read.waiting(at(10))
    assert 10 * 60 == read.waiting(at(15))
    assert 15 * 60 == read.wall(at(15))


def test_the_end_stops_them():
    read = clocks((0, started()), (4, SessionIdle()), (9, SessionStopped(by="u", reason="r")))

    assert (5 * 60, 9 * 60) == (read.waiting(at(60)), read.wall(at(60)))
