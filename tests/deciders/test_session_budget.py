"""What a session owes its budget (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.session import Status
from cueline.deciders.session.budget import budget_of, path_of
from cueline.deciders.session.due import CallModel, CloseReservation, ReserveBudget
from cueline.deciders.session.limit_state import Bill
from cueline.events.budget import Allowance
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    ModelReplied,
    ModelRequested,
    ModelStarted,
    ReservationClosed,
    SessionCompleted,
    SessionIdle,
    SessionTakenOver,
    ToolStarted,
)
from cueline.testing.given import given
from tests.deciders.session_budget_example import (
    COST,
    USED,
    asked,
    closed,
    granted,
    owed,
    reply,
)
from tests.session_example import (
    NOW,
    asking,
    failing,
    returned,
    running,
    saying,
    started,
)


# 000-003, 000-018, 000-019
def test_a_session_with_a_limit_asks_before_it_asks_the_model():
    past = asked()

    assert [ReserveBudget("1.m", 1)] == owed(past)
    past.when(asking()).then_nothing()
    past.when(granted()).then(ModelStarted)
    assert [] == owed(past)


def test_a_session_without_limits_up_to_the_root_does_not_ask_the_ledger():
    past = given().when(started())

    assert [CallModel("1.m", 1)] == owed(past)
    past.when(asking(), saying("shout")).then(ModelReplied)
    assert () == past.state.account.bills


# 000-007, D7
def test_a_child_asks_because_of_the_limits_above_it():
    above = Allowance(session="session-default/root", max_cost=Decimal(5))
    family = {"allowances": (above,), "parent": above.session, "root": above.session}
    past = given().when(started().model_copy(update=family))

    assert [ReserveBudget("1.m", 1)] == owed(past)
    assert "budget-default/root" == budget_of(past.state)
    assert (above.session,) == tuple(each.session for each in path_of(past.state))[1:]


def test_a_call_that_was_used_is_settled_at_what_it_cost():
    past = asked().when(granted(), reply("shout"))

    assert CloseReservation(Bill("1.m", 1, usage=USED, cost=COST)) in owed(past)
    past.when(closed()).then(ReservationClosed)
    assert () == past.state.account.bills


def test_the_next_call_is_asked_for_once_the_last_is_paid():
    past = asked().when(granted(), reply("look"), running("1.0", "look"), returned("1.0"))

    past.then(type(returned("1.0")))
    past.when(closed()).then(ReservationClosed, ModelRequested)
    assert [ReserveBudget("2.m", 1)] == owed(past)


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


@pytest.mark.parametrize("kind", ["refused", "rate_limited"])
def test_a_failed_call_whose_use_is_known_costs_that(kind):
    failed = failing(kind).model_copy(update={"usage": USED, "cost": COST})
    past = asked().when(granted(), failed)

    assert [CloseReservation(Bill("1.m", 1, usage=USED, cost=COST))] == owed(past)


# I8: a gateway may leave out what its reply took; that is not nothing.
@pytest.mark.parametrize("cost", [None, Cost(usd=Decimal(0), prices="list")])
def test_a_reply_without_usage_costs_its_whole_reservation(cost):
    told_nothing = reply().model_copy(update={"usage": Usage(), "cost": cost})
    past = asked().when(granted(), told_nothing)

    assert [CloseReservation(Bill("1.m", 1, cost=cost))] == owed(past)


def test_a_reply_with_a_cost_and_no_use_costs_that():
    past = asked().when(granted(), reply().model_copy(update={"usage": Usage()}))

    assert [CloseReservation(Bill("1.m", 1, usage=Usage(), cost=COST))] == owed(past)


def test_a_call_that_was_lost_with_its_host_costs_all_and_is_made_again():
    past = asked().when(granted(), SessionTakenOver(epoch=2, at=NOW)).then(SessionTakenOver)

    assert [CloseReservation(Bill("1.m", 1))] == owed(past)
    past.when(closed(outcome="estimated")).then(ReservationClosed, ModelRequested)
    assert [ReserveBudget("1.m", 2)] == owed(past)


def test_a_fatal_failure_ends_the_session_once_it_is_paid():
    past = asked().when(granted(), failing("refused"))

    assert Status.RUNNING == past.state.status
    past.when(closed())
    assert Status.FAILED == past.state.status


# 000-020, C21: the ledger says no to who asks for more; a spent limit holds nobody else.
def test_a_spent_limit_blocks_only_sessions_that_ask_for_more():
    past = asked().when(granted(), reply("look"), running("1.0", "look"), returned("1.0"))

    past.when(closed().model_copy(update={"shares": {"max_cost": 1.0}}))
    assert [ReserveBudget("2.m", 1)] == owed(past)


def test_tools_run_while_the_call_is_being_paid():
    past = asked().when(granted(), reply("look"), running("1.0", "look")).then(ToolStarted)

    assert CloseReservation(Bill("1.m", 1, usage=USED, cost=COST)) in owed(past)
