"""What ends the need for a reservation, and that it is closed (I8)."""

import pytest

from cueline.deciders.session import due
from cueline.deciders.session.due import CloseReservation, Reserve
from cueline.deciders.session.meter import Bill
from cueline.events.agent import BreakerPolicy, Fallback
from cueline.events.inbox import (
    PauseAsked,
    ResumeAsked,
    StopAsked,
)
from cueline.events.session import (
    MessageReceived,
    ModelRequested,
    ReservationClosed,
    SessionForked,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.testing.given import given
from cueline.testing.session_example import (
    NOW,
    failing,
    forked,
    later,
    received,
    running,
    started,
)
from tests.deciders.session_budget_example import (
    EXHAUSTED,
    LIMITED,
    asked,
    closed,
    granted,
    owed,
    reply,
)


@pytest.mark.parametrize("message", [PauseAsked(), StopAsked()])
def test_a_call_that_will_not_begin_is_released(message):
    past = asked().when(received(2, message)).then(MessageReceived)

    assert [CloseReservation(Bill("1.m", 1, started=False))] == owed(past)
    past.when(granted()).then_nothing()


def test_a_pause_rests_after_the_release_and_asks_anew_when_it_is_over():
    past = asked().when(received(2, PauseAsked()), closed(outcome="released"))

    past.then(ReservationClosed, SessionWaiting)
    past.when(received(3, ResumeAsked())).then(MessageReceived, ModelRequested)
    assert [Reserve("1.m", 2)] == owed(past)


def test_a_stop_ends_after_the_release():
    past = asked().when(EXHAUSTED, received(2, StopAsked())).then(MessageReceived)

    past.when(closed(outcome="released")).then(ReservationClosed, SessionStopped)


def test_a_stop_waits_for_a_call_that_is_out_and_then_for_its_bill():
    past = asked().when(granted(), received(2, StopAsked()), failing("cancelled"))

    assert [CloseReservation(Bill("1.m", 1))] == owed(past)
    past.when(closed(outcome="estimated")).then(ReservationClosed, SessionStopped)


def test_a_call_that_the_ledger_has_closed_is_asked_for_as_another_attempt():
    past = asked().when(closed(outcome="released")).then(ReservationClosed, ModelRequested)

    assert [Reserve("1.m", 2)] == owed(past)


# I8: its host may have died between the grant and the start.
def test_a_call_that_was_kept_back_is_released_before_the_next_model_is_asked():
    stand_in = Fallback(provider="scripted", model="m2")
    breaker = BreakerPolicy(on_open="fallback")
    spec = LIMITED.model_copy(update={"fallback": (stand_in,), "breaker": breaker})
    kept_back = SessionWaiting(
        kind="breaker", why="it keeps failing", deadline_at=later(60), effects=("1.m",)
    )
    past = given().when(started(spec), kept_back)

    assert [CloseReservation(Bill("1.m", 1, started=False))] == due(past.state)
    past.when(closed(outcome="released"))
    assert [Reserve("1.m", 2, fallback=1)] == due(past.state)


def test_what_is_closed_twice_is_closed_once():
    past = asked().when(granted(), reply("shout"), closed())

    past.when(closed()).then_nothing()


def test_a_session_that_takes_its_hosts_down_still_pays():
    lost = [SessionTakenOver(epoch=n, at=NOW) for n in (2, 3, 4)]
    past = asked().when(granted(), *lost)

    assert [CloseReservation(Bill("1.m", 1))] == owed(past)
    past.when(closed(outcome="estimated")).then(ReservationClosed, SessionWaiting)
    assert "operator" == past.state.waiting.kind


def test_nothing_that_is_held_crosses_a_fork():
    past = asked().when(granted(), reply("shout"), running("1.0"))

    past.when(forked(LIMITED, "Go on.", version=5)).then(SessionForked, ModelRequested)
    assert [Reserve("2.m", 1)] == owed(past)
