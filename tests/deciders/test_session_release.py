"""What ends the need for a reservation, and that it is closed (I8)."""

import pytest

from cueline.deciders.session import due, wake_at
from cueline.deciders.session.due import CloseReservation, ReserveBudget
from cueline.deciders.session.limit_state import Bill
from cueline.events.agent import Fallback
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.codes import Cause
from cueline.events.inbox import (
    PauseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.session import (
    MessageReceived,
    ModelRequested,
    ReservationClosed,
    SessionContinued,
    SessionForked,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.testing.given import given
from tests.deciders.session_budget_example import (
    EXHAUSTED,
    LIMITED,
    asked,
    closed,
    granted,
    owed,
    reply,
)
from tests.session_example import (
    NOW,
    failing,
    forked,
    later,
    received,
    running,
    started,
)

KEPT_BACK = SessionWaiting(
    kind="breaker",
    cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
    deadline_at=later(60),
    effects=("1.m",),
    reserved=True,
)
TIME = SessionContinued(by="deadline", at=later(60))
RELEASE = CloseReservation(Bill("1.m", 1, started=False))


@pytest.mark.parametrize("message", [PauseAsked(), StopAsked()])
def test_a_call_that_will_not_begin_is_released(message):
    past = asked().when(received(2, message)).then(MessageReceived)

    assert [RELEASE] == owed(past)
    past.when(granted()).then_nothing()


def test_a_pause_rests_after_the_release_and_asks_anew_when_it_is_over():
    past = asked().when(received(2, PauseAsked()), closed(outcome="released"))

    past.then(ReservationClosed, SessionWaiting)
    past.when(received(3, ResumeAsked())).then(MessageReceived, ModelRequested)
    assert [ReserveBudget("1.m", 2)] == owed(past)


def test_a_stop_ends_after_the_release():
    past = asked().when(EXHAUSTED, received(2, StopAsked())).then(MessageReceived)

    past.when(closed(outcome="released")).then(ReservationClosed, SessionStopped)


def test_a_stop_waits_for_a_call_that_is_out_and_then_for_its_bill():
    past = asked().when(granted(), received(2, StopAsked()), failing("cancelled"))

    assert [CloseReservation(Bill("1.m", 1))] == owed(past)
    past.when(closed(outcome="estimated")).then(ReservationClosed, SessionStopped)


def test_a_call_that_the_ledger_has_closed_is_asked_for_as_another_attempt():
    past = asked().when(closed(outcome="released")).then(ReservationClosed, ModelRequested)

    assert [ReserveBudget("1.m", 2)] == owed(past)


# I8: its host may have died between the grant and the start.
def test_a_blocked_call_is_released_before_the_next_model_is_called():
    stand_in = Fallback(provider="scripted", model="m2")
    breaker = BreakerPolicy(on_open="fallback")
    spec = LIMITED.model_copy(update={"fallback": (stand_in,), "breaker": breaker})
    past = given().when(started(spec), KEPT_BACK)

    assert [RELEASE] == due(past.state)
    past.when(closed(outcome="released"))
    assert [ReserveBudget("1.m", 2, fallback=1)] == due(past.state)


# I8: others may need the room that it does not.
def test_a_call_blocked_by_a_breaker_holds_no_reservation():
    past = given().when(started(LIMITED), KEPT_BACK)

    assert [RELEASE] == due(past.state)
    past.when(closed(outcome="released")).then(ReservationClosed, SessionWaiting)
    assert ("breaker", later(60)) == (past.state.waiting.kind, wake_at(past.state))
    assert [] == due(past.state)


def test_a_call_blocked_before_its_reservation_releases_nothing():
    before = KEPT_BACK.model_copy(update={"reserved": False})
    past = given().when(started(LIMITED), before)

    assert [] == due(past.state)
    past.when(TIME)
    assert [ReserveBudget("1.m", 1)] == due(past.state)


def test_a_blocked_call_is_reserved_again_when_it_is_due():
    past = given().when(started(LIMITED), KEPT_BACK, closed(outcome="released"), TIME)

    past.then(SessionContinued, ModelRequested)
    assert [ReserveBudget("1.m", 2)] == due(past.state)


# I8: else the release could overtake the grant, and nobody would hold what the call costs.
@pytest.mark.parametrize(
    "ended",
    [
        (KEPT_BACK, TIME),
        (KEPT_BACK, received(2, ResumeAsked())),
        (received(2, PauseAsked()), received(3, ResumeAsked())),
    ],
)
def test_what_is_being_released_is_not_reserved_before_that_is_done(ended):
    past = given().when(started(LIMITED), *ended)

    assert [RELEASE] == due(past.state)
    past.when(granted()).then_nothing()
    past.when(closed(outcome="released")).then(ReservationClosed, ModelRequested)
    assert [ReserveBudget("1.m", 2)] == due(past.state)


def test_what_is_closed_twice_is_closed_once():
    past = asked().when(granted(), reply("shout"), closed())

    past.when(closed()).then_nothing()


def test_a_session_that_takes_its_hosts_down_still_pays():
    lost = SessionTakenOver(epoch=2, at=NOW)
    past = asked()
    for attempt in (1, 2):
        past.when(granted(attempt=attempt), lost, closed(outcome="estimated", attempt=attempt))

    past.when(granted(attempt=3), lost)

    assert [CloseReservation(Bill("1.m", 3))] == owed(past)
    past.when(closed(outcome="estimated", attempt=3)).then(ReservationClosed, SessionWaiting)
    assert "operator" == past.state.waiting.kind


def test_nothing_that_is_held_crosses_a_fork():
    past = asked().when(granted(), reply("shout"), running("1.0"))

    past.when(forked(LIMITED, "Go on.", version=5)).then(SessionForked, ModelRequested)
    assert [ReserveBudget("2.m", 1)] == owed(past)
