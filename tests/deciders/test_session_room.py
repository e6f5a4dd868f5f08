"""How a session waits for room in its budget, and for a raise (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.session import Status, wake_at
from cueline.deciders.session.due import ReserveBudget
from cueline.events.agent import Limits
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import (
    BudgetFreed,
    PauseAsked,
    RaiseAsked,
)
from cueline.events.session import (
    LimitRaised,
    LimitWarned,
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionWaiting,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.session_budget_example import (
    BUDGET,
    EXHAUSTED,
    asked,
    busy,
    closed,
    granted,
    owed,
    reply,
)
from tests.session_example import (
    AGENT,
    asking,
    later,
    received,
    returned,
    running,
    saying,
    started,
)


def test_who_is_busy_waits_a_minute_and_asks_again():
    # I14
    past = asked().when(busy()).then(SessionWaiting)

    assert ([], later(60)) == (owed(past), wake_at(past.state))
    past.when(SessionContinued(by="deadline", at=later(60))).then(SessionContinued)
    assert [ReserveBudget("1.m", 1)] == owed(past)


def test_who_hears_of_room_asks_at_once():
    past = asked().when(busy(), received(2, BudgetFreed(budget=BUDGET)))

    past.then(MessageReceived, SessionContinued)
    assert [ReserveBudget("1.m", 1)] == owed(past)


def test_an_offer_without_a_waiting_call_changes_nothing():
    past = asked().when(granted(), received(2, BudgetFreed(budget=BUDGET))).then(MessageReceived)

    assert [] == owed(past)


# 000-020, C21, D8: it waits, and has not failed.
def test_who_is_exhausted_waits_for_a_raise():
    past = asked().when(EXHAUSTED).then(SessionWaiting)

    assert ([], None) == (owed(past), wake_at(past.state))
    assert ("budget", Status.WAITING) == (past.state.waiting.kind, past.state.status)
    past.when(received(2, RaiseAsked(max_cost=Decimal(2))))
    past.then(MessageReceived, LimitRaised(max_cost=Decimal(2)), SessionContinued)
    assert [ReserveBudget("1.m", 1)] == owed(past)


def test_a_wait_says_what_has_to_be_raised_and_whose_it_is():
    cause = Cause(code="budget_exhausted", limit="max_tokens", whose="session-default/root")
    spent = EXHAUSTED.model_copy(update={"cause": cause})

    past = asked().when(spent).then(spent)

    assert ("max_tokens", cause) == (past.state.waiting.raisable, past.state.waiting.cause)


def test_what_others_hold_needs_no_raise():
    cause = Cause(code="budget_busy", limit="max_cost")

    past = asked().when(busy().model_copy(update={"cause": cause}))

    assert (cause, "") == (past.state.waiting.cause, past.state.waiting.raisable)


def test_a_refused_request_counts_only_while_it_waits():
    past = asked().when(received(2, PauseAsked()))

    past.when(busy()).then_nothing()


# 000-048, 000-061, 000-062: limits are facts.
def test_a_raise_is_a_fact_of_its_own():
    past = asked().when(received(2, RaiseAsked(max_cost=Decimal(2), max_turns=60)))

    past.then(MessageReceived, LimitRaised(max_cost=Decimal(2), max_turns=60))
    assert (Decimal(2), 60, 1000) == (
        past.state.limit_state.limits.max_cost,
        past.state.limit_state.limits.max_turns,
        past.state.limit_state.limits.max_tokens,
    )


@pytest.mark.parametrize(
    ("message", "refusal"),
    [
        (RaiseAsked(max_cost=Decimal(1)), Refusal(code="not_higher", limit="max_cost", of=1)),
        (RaiseAsked(max_tokens=10), Refusal(code="not_higher", limit="max_tokens", of=1000)),
        (
            RaiseAsked(max_wall_seconds=10),
            Refusal(code="no_such_limit", limit="max_wall_seconds"),
        ),
        (RaiseAsked(), Refusal(code="no_limit_named")),
        (
            RaiseAsked(max_cost=Decimal(2), max_turns=1),
            Refusal(code="not_higher", limit="max_turns", of=50),
        ),
    ],
)
def test_a_limit_is_neither_lowered_nor_introduced(message, refusal):
    past = asked().when(received(2, message)).then_rejected(refusal.code)

    assert refusal == past.facts[0].refusal


def test_a_raise_of_turns_lets_a_session_at_its_limit_go_on():
    spec = AGENT.model_copy(update={"limits": Limits(max_turns=1)})
    past = given().when(started(spec), asking(), saying("look"))
    past.when(running("1.0", "look"), returned("1.0"))

    past.when(received(2, RaiseAsked(max_turns=2)))
    past.then(MessageReceived, LimitRaised, ModelRequested)


# C21: of the limit as it is now.
def test_a_raised_limit_is_not_warned_of_for_what_was_spent_of_the_former():
    nearly = closed().model_copy(update={"shares": {"max_cost": 0.95}})
    past = asked().when(granted(), reply("look"), nearly, running("1.0", "look"))

    past.when(received(2, RaiseAsked(max_cost=Decimal(9)))).then(MessageReceived, LimitRaised)
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)


def test_a_raised_limit_is_warned_of_anew_for_what_is_spent_of_it():
    def spent(turn):
        return closed(turn).model_copy(update={"shares": {"max_cost": 0.8}})

    past = asked().when(granted(), reply("look"), spent(1), running("1.0", "look"))
    past.when(received(2, RaiseAsked(max_cost=Decimal(9))), returned("1.0"))

    past.when(granted(2), reply("look", turn=2), spent(2), running("2.0", "look"))

    past.when(returned("2.0")).then(ToolReturned, LimitWarned, ModelRequested)


# 000-020, C21: people at 0.8, and the agent at 0.9.
@pytest.mark.parametrize(
    ("limit", "share", "notes"),
    [
        ("max_cost", 0.79, []),
        ("max_cost", 0.8, [""]),
        ("max_cost", 0.9, ["", "You are approaching the cost budget. Wrap up current work."]),
        ("max_tokens", 0.95, ["", "You are approaching the token budget. Wrap up current work."]),
    ],
)
def test_people_and_the_agent_are_warned_of_what_is_spent(limit, share, notes):
    nearly = closed().model_copy(update={"shares": {limit: share}})
    past = asked().when(granted(), reply("look"), nearly, running("1.0", "look"))

    past.when(returned("1.0"))

    warnings = [fact for fact in past.facts if isinstance(fact, LimitWarned)]
    assert [(limit, note) for note in notes] == [(each.limit, each.note) for each in warnings]
