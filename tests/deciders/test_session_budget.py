"""What a session owes its budget, and how it waits for room (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import CallModel, CloseReservation, Reserve
from cueline.deciders.session.state import Bill
from cueline.events.agent import BreakerPolicy, Fallback, Limits
from cueline.events.budget import Allowance
from cueline.events.inbox import (
    ChildAsked,
    ChildEnded,
    PauseAsked,
    RaiseAsked,
    ResumeAsked,
    RoomMade,
    StopAsked,
)
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    ChildSettled,
    ChildSpawned,
    LimitRaised,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    ReservationClosed,
    SessionCompleted,
    SessionContinued,
    SessionForked,
    SessionIdle,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolStarted,
)
from cueline.testing.given import given
from cueline.testing.session_example import (
    AGENT,
    NOW,
    asking,
    failing,
    later,
    received,
    returned,
    running,
    saying,
    started,
)

LIMITED = AGENT.model_copy(update={"limits": Limits(max_cost=Decimal(1), max_tokens=1000)})
USED = Usage(input=10, output=5)
COST = Cost(usd=Decimal("0.02"), prices="list")
BUDGET = "budget-default/1"


def granted(turn=1, attempt=1):
    return ModelStarted(effect=f"{turn}.m", attempt=attempt, grant=f"grant {turn}.{attempt}")


def reply(*tools, turn=1, attempt=1):
    said = saying(*tools, turn=turn, attempt=attempt)
    return said.model_copy(update={"usage": USED, "cost": COST})


def closed(turn=1, attempt=1, outcome="settled"):
    return ReservationClosed(effect=f"{turn}.m", attempt=attempt, outcome=outcome)


def busy(until=60):
    return SessionWaiting(kind="budget", why="busy: it is", deadline_at=later(until))


EXHAUSTED = SessionWaiting(kind="budget", why="exhausted: it is", exhausted=True)


def asked(**fields):
    return given().when(started(LIMITED, **fields))


def owed(past):
    return due(past.state)


# 000-003, 000-018, 000-019
def test_a_session_with_a_limit_asks_before_it_asks_the_model():
    past = asked()

    assert [Reserve("1.m", 1)] == owed(past)
    past.when(asking()).then_nothing()
    past.when(granted()).then(ModelStarted)
    assert [] == owed(past)


def test_a_session_without_a_limit_on_its_way_to_the_root_asks_nobody():
    past = given().when(started())

    assert [CallModel("1.m", 1)] == owed(past)
    past.when(asking(), saying("shout")).then(ModelReplied)
    assert () == past.state.account.bills


# 000-007, D7
def test_a_child_asks_because_of_the_limits_above_it():
    above = Allowance(session="session-default/root", max_cost=Decimal(5))
    child = started().model_copy(update={"allowances": (above,), "parent": above.session})

    assert [Reserve("1.m", 1)] == owed(given().when(child))


def test_a_call_that_was_used_is_settled_at_what_it_cost():
    past = asked().when(granted(), reply("shout"))

    assert CloseReservation(Bill("1.m", 1, usage=USED, cost=COST)) in owed(past)
    past.when(closed()).then(ReservationClosed)
    assert () == past.state.account.bills


def test_the_next_call_is_asked_for_once_the_last_is_paid():
    past = asked().when(granted(), reply("look"), running("1.0", "look"), returned("1.0"))

    past.then(type(returned("1.0")))
    past.when(closed()).then(ReservationClosed, ModelRequested)
    assert [Reserve("2.m", 1)] == owed(past)


def test_the_end_comes_after_the_last_call_is_paid():
    past = asked().when(granted(), reply()).then(ModelReplied)

    past.when(closed()).then(ReservationClosed, SessionCompleted)


def test_an_open_session_is_idle_once_the_last_call_is_paid():
    past = asked(open=True).when(granted(), reply()).then(ModelReplied)

    past.when(closed()).then(ReservationClosed, SessionIdle)


# 004-083: a failed attempt that may have been billed counts.
@pytest.mark.parametrize(
    ("kind", "used"),
    [("timeout", None), ("network", None), ("unknown", None), ("rate_limited", Usage())],
)
def test_a_failed_call_costs_all_unless_the_vendor_said_no_at_once(kind, used):
    past = asked().when(granted(), failing(kind))

    assert [CloseReservation(Bill("1.m", 1, usage=used))] == owed(past)


def test_a_failed_call_whose_use_is_known_costs_that():
    failed = failing("network").model_copy(update={"usage": USED})

    assert [CloseReservation(Bill("1.m", 1, usage=USED))] == owed(asked().when(granted(), failed))


def test_a_call_that_was_lost_with_its_host_costs_all_and_is_made_again():
    past = asked().when(granted(), SessionTakenOver(epoch=2, at=NOW)).then(SessionTakenOver)

    assert [CloseReservation(Bill("1.m", 1))] == owed(past)
    past.when(closed(outcome="estimated")).then(ReservationClosed, ModelRequested)
    assert [Reserve("1.m", 2)] == owed(past)


def test_a_fatal_failure_ends_the_session_once_it_is_paid():
    past = asked().when(granted(), failing("refused"))

    assert Status.RUNNING == past.state.status
    past.when(closed())
    assert Status.FAILED == past.state.status


# 000-020, C21: the ledger says no to who asks for more; a spent limit holds nobody else.
def test_a_limit_that_is_spent_holds_only_who_asks_for_more():
    past = asked().when(granted(), reply("look"), running("1.0", "look"), returned("1.0"))

    past.when(closed().model_copy(update={"shares": {"max_cost": 1.0}}))
    assert [Reserve("2.m", 1)] == owed(past)


# Waiting for room.


def test_who_is_busy_waits_a_minute_and_asks_again():
    # I14
    past = asked().when(busy()).then(SessionWaiting)

    assert ([], later(60)) == (owed(past), wake_at(past.state))
    past.when(SessionContinued(by="deadline", at=later(60))).then(SessionContinued)
    assert [Reserve("1.m", 1)] == owed(past)


def test_who_hears_of_room_asks_at_once():
    past = asked().when(busy(), received(2, RoomMade(budget=BUDGET)))

    past.then(MessageReceived, SessionContinued)
    assert [Reserve("1.m", 1)] == owed(past)


def test_news_of_room_that_nobody_waits_for_changes_nothing():
    past = asked().when(granted(), received(2, RoomMade(budget=BUDGET))).then(MessageReceived)

    assert [] == owed(past)


# 000-020, C21, D8: it waits, and has not failed.
def test_who_is_exhausted_waits_for_a_raise():
    past = asked().when(EXHAUSTED).then(SessionWaiting)

    assert ([], None) == (owed(past), wake_at(past.state))
    assert ("budget", Status.WAITING) == (past.state.waiting.kind, past.state.status)
    past.when(received(2, RaiseAsked(max_cost=Decimal(2))))
    past.then(MessageReceived, LimitRaised(max_cost=Decimal(2)), SessionContinued)
    assert [Reserve("1.m", 1)] == owed(past)


def test_a_refusal_counts_only_while_room_is_wanted():
    past = asked().when(received(2, PauseAsked()))

    past.when(busy()).then_nothing()


# 000-048, 000-061, 000-062: limits are facts.
def test_a_raise_is_a_fact_of_its_own():
    past = asked().when(received(2, RaiseAsked(max_cost=Decimal(2), max_turns=60)))

    past.then(MessageReceived, LimitRaised(max_cost=Decimal(2), max_turns=60))
    assert (Decimal(2), 60, 1000) == (
        past.state.meter.limits.max_cost,
        past.state.meter.limits.max_turns,
        past.state.meter.limits.max_tokens,
    )


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (RaiseAsked(max_cost=Decimal(1)), "max_cost is 1 already"),
        (RaiseAsked(max_tokens=10), "max_tokens is 1000 already"),
        (RaiseAsked(max_wall_seconds=10), "has no max_wall_seconds"),
        (RaiseAsked(), "names no limit"),
        (RaiseAsked(max_cost=Decimal(2), max_turns=1), "max_turns is 50 already"),
    ],
)
def test_a_limit_is_neither_lowered_nor_introduced(message, reason):
    asked().when(received(2, message)).then_rejected(reason)


def test_a_raise_of_turns_lets_a_session_at_its_limit_go_on():
    spec = AGENT.model_copy(update={"limits": Limits(max_turns=1)})
    past = given().when(started(spec), asking(), saying("look"))
    past.when(running("1.0", "look"), returned("1.0"))

    past.when(received(2, RaiseAsked(max_turns=2)))
    past.then(MessageReceived, LimitRaised, ModelRequested)


# What ends the need.


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
    fork = SessionForked(
        parent="session-default/1", version=5, hash="", agent=LIMITED, goal="Go on.",
        open=False, attached=False, note=None, epoch=1,
    )  # fmt: skip

    past.when(fork).then(SessionForked, ModelRequested)
    assert [Reserve("2.m", 1)] == owed(past)


# Children.


def test_a_child_and_what_it_spent_are_facts_of_its_parent():
    name = "session-default/child"
    past = given().when(started(), received(2, ChildAsked(child=name)))

    past.then(MessageReceived, ChildSpawned(child=name))
    ended = ChildEnded(child=name, status="completed", tokens=9, usd=Decimal("0.1"))
    past.when(received(3, ended)).then(
        MessageReceived,
        ChildSettled(child=name, status="completed", tokens=9, usd=Decimal("0.1")),
    )


def test_tools_run_while_the_call_is_being_paid():
    past = asked().when(granted(), reply("look"), running("1.0", "look")).then(ToolStarted)

    assert CloseReservation(Bill("1.m", 1, usage=USED, cost=COST)) in owed(past)
