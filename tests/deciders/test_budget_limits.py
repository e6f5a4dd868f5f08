"""The limits of a budget: who is warned of them, how they are raised, what is said of them."""

from decimal import Decimal

import pytest

from cueline.deciders.budget import Amount, Raise, Reserve, answer, closing_of
from cueline.events.budget import Allowance, BudgetOffered, BudgetRaised, BudgetWarned, CostSettled
from cueline.events.codes import Cause
from tests.deciders.budget_example import (
    CHILD,
    ROOT,
    asked,
    call,
    given,
    raised,
    reserve,
    said,
    settle,
)


# 000-020, C21: people are warned once.
def test_people_are_warned_once_when_four_fifths_are_spent():
    past = asked(reserve("0.8")).when(settle("0.8"))

    past.then(
        CostSettled,
        BudgetWarned(session=ROOT, limit="max_cost", spent=Decimal("0.8"), of=Decimal(1)),
    )
    past.when(reserve("0.1", turn=2), settle("0.1", turn=2)).then(CostSettled)


# 000-048
def test_a_raised_limit_offers_budget_to_waiting_sessions():
    past = asked(reserve("1"), settle("1"), reserve("0.5", CHILD))

    past.when(raised("2")).then(
        BudgetRaised(session=ROOT, max_cost=Decimal(2), message="inbox-default/root@2"),
        BudgetOffered(sessions=(CHILD,)),
    )
    assert "granted" == said(past, reserve("0.5", CHILD))


def test_a_raise_that_is_handed_over_twice_counts_once():
    asked(reserve("1"), raised("2"), raised("3", "other")).when(raised("2")).then_nothing()


@pytest.mark.parametrize("command", [raised("0.5"), raised("1"), raised(None, tokens=9)])
def test_a_limit_is_neither_lowered_nor_introduced(command):
    asked(reserve("1")).when(command).then_nothing()


def test_a_budget_is_not_opened_for_nothing():
    given().when(raised("0.5")).then_nothing()


def test_a_raised_limit_warns_anew():
    past = asked(reserve("1"), settle("0.9"), raised("2"), reserve("1", turn=2))

    past.when(settle("0.8", turn=2)).then(CostSettled, BudgetWarned)


def test_of_two_limits_the_one_that_is_higher_now_is_raised():
    both = (Allowance(session=ROOT, max_tokens=100, max_cost=Decimal(1)),)
    past = asked(Reserve(call(), 1, both, Amount(10, Decimal("0.1"))))

    past.when(Raise(ROOT, both, 50, Decimal(2), "a")).then(
        BudgetRaised(session=ROOT, max_cost=Decimal(2), message="a")
    )
    past.when(Raise(ROOT, both, 200, Decimal(1), "b")).then(
        BudgetRaised(session=ROOT, max_tokens=200, message="b")
    )


def test_the_share_that_is_spent_is_of_the_limit_as_it_is_now():
    past = asked(reserve("0.5"), settle("0.5"), raised("3"))

    assert {"max_cost": 0.1667} == closing_of(call(), past.state).shares


# Of all limits on the way to the root, the fullest.
def test_the_share_is_that_of_the_limit_that_is_reached_first():
    past = asked(reserve("0.2", CHILD, own="0.4"), settle("0.2", CHILD))

    assert {"max_cost": 0.5} == closing_of(call(CHILD), past.state).shares


def test_people_are_told_which_limit_and_whose():
    past, wanted = asked(reserve("0.7")), reserve("0.4", CHILD)
    tokens = (Allowance(session=ROOT, max_tokens=90_000),)
    too_many = Reserve(call(), 1, tokens, Amount(90_001, Decimal(0)))

    busy = answer(wanted, past.when(wanted).state)
    spent = answer(too_many, asked(too_many).state)

    assert busy.cause == Cause(
        code="budget_busy",
        limit="max_cost",
        of=Decimal(1),
        whose=ROOT,
        held=Decimal("0.7"),
        need=Decimal("0.4"),
    )
    assert spent.cause == Cause(
        code="budget_exhausted", limit="max_tokens", of=Decimal(90_000), need=Decimal(90_001)
    )
