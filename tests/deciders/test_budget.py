"""The rules of one budget: reserve, settle, release (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.budget import BUDGET, Amount, Reserve, closing_of, fencing_epoch
from cueline.events.budget import (
    Allowance,
    BudgetOffered,
    BudgetOpened,
    BudgetRefused,
    BudgetWarned,
    CostReleased,
    CostReserved,
    CostSettled,
)
from tests.deciders.budget_example import (
    CHILD,
    JOINED,
    OPENED,
    OTHER,
    ROOT,
    asked,
    call,
    given,
    release,
    reserve,
    said,
    settle,
)


# 000-003: a call is granted before it is made.
def test_a_first_call_opens_the_budget_and_is_reserved():
    given().when(reserve("0.4")).then(
        OPENED,
        CostReserved(session=ROOT, effect="1.m", attempt=1, epoch=1, tokens=10, usd=Decimal("0.4")),
    )


def test_the_same_question_has_the_same_answer():
    past = asked(reserve("0.4"))

    assert "granted" == said(past, reserve("0.4"))
    past.then_nothing()


# 000-007, D7: one budget for a session and its descendants, each limit on the way is checked.
def test_a_child_takes_from_the_budget_of_its_root():
    past = asked(reserve("0.7"))

    assert "busy" == said(past, reserve("0.4", CHILD))
    past.then(
        JOINED,
        BudgetRefused(
            session=CHILD,
            effect="1.m",
            attempt=1,
            epoch=1,
            answer="busy",
            limit="max_cost",
            whose=ROOT,
            tokens=10,
            usd=Decimal("0.4"),
        ),
    )


def test_a_child_keeps_to_its_own_limit_too():
    past = asked(reserve("0.4", CHILD, own="0.3"))

    past.then(OPENED, BudgetOpened, BudgetRefused)
    assert (CHILD, "exhausted") == (past.facts[-1].whose, past.facts[-1].answer)


# 000-018
def test_tokens_are_a_limit_of_their_own():
    only_tokens = (Allowance(session=ROOT, max_tokens=100),)
    past = asked(Reserve(call(), 1, only_tokens, Amount(101, Decimal(0))))

    past.then(BudgetOpened, BudgetRefused)
    assert "max_tokens" == past.facts[-1].limit


def test_a_call_that_fills_the_limit_to_the_brim_is_granted():
    assert "granted" == said(given(), reserve("1"))


# C23: settled at what was used, the rest is free again.
def test_a_settled_call_costs_what_was_used():
    past = asked(reserve("0.9")).when(settle("0.2"))

    past.then(CostSettled)
    assert "granted" == said(past, reserve("0.8", turn=2))


def test_a_call_of_unknown_cost_is_settled_at_its_reservation():
    past = asked(reserve("0.9")).when(settle(None))

    past.then(CostSettled, BudgetWarned)
    assert (Decimal("0.9"), True) == (past.facts[0].usd, past.facts[0].estimated)
    assert "estimated" == closing_of(call(), past.state).outcome


def test_who_waits_for_an_attempt_is_told_that_the_one_before_is_over():
    past = asked(reserve("0.6"), reserve("0.6", CHILD), release(CHILD))
    past.when(reserve("0.6", CHILD, attempt=2))

    assert "closed" == said(past, reserve("0.6", CHILD))
    assert "busy" == said(past, reserve("0.6", CHILD, attempt=2))


def test_settling_twice_is_settling_once():
    past = asked(reserve("0.5"), settle("0.2")).when(settle("0.2")).then_nothing()

    told = closing_of(call(), past.state)
    assert ("settled", Amount(10, Decimal("0.2"))) == (told.outcome, told.amount)
    assert {"max_cost": 0.2} == told.shares


# 000-020: nothing goes out once the limit is reached.
def test_spent_amounts_exhaust_the_budget():
    past = asked(reserve("1"), settle("0.95"))

    assert "exhausted" == said(past, reserve("0.1", turn=2))


def test_a_call_that_passes_its_reservation_is_recorded_and_stops_the_next():
    # I8
    past = asked(reserve("0.9")).when(settle("1.2", tokens=15))

    assert (Decimal("0.3"), 5) == (past.facts[0].usd_over, past.facts[0].tokens_over)
    assert "exhausted" == said(past, reserve("0.01", turn=2))


def test_a_released_call_costs_nothing_and_never_starts():
    past = asked(reserve("0.9")).when(release()).then(CostReleased)

    assert "closed" == said(past, reserve("0.9"))
    assert "granted" == said(past, reserve("0.9", attempt=2))


def test_releasing_an_unknown_call_bars_it():
    past = given().when(release()).then(OPENED, CostReleased)

    assert "closed" == said(past, reserve("0.1"))


def test_what_was_spent_without_a_reservation_is_counted_all_the_same():
    past = asked(settle("0.3"))

    assert Decimal("0.3") == past.facts[-1].usd_over
    assert "exhausted" == said(past, reserve("0.8", turn=2))


def test_an_unclosed_call_counts_as_spent_when_the_session_continues():
    past = asked(reserve("0.4")).when(reserve("0.4", turn=2)).then(CostSettled, CostReserved)

    assert past.facts[0].estimated


def test_an_earlier_call_does_not_come_back():
    past = asked(reserve("0.1", turn=2))

    assert "closed" == said(past, reserve("0.1", turn=1))


# I3
def test_a_former_owner_is_fenced():
    past = asked(reserve("0.1", epoch=2))

    assert 2 == fencing_epoch(reserve("0.1", turn=2, epoch=1), past.state)
    assert fencing_epoch(reserve("0.1", turn=2, epoch=2), past.state) is None


def test_a_new_owner_that_asks_again_fences_the_former_one():
    past = asked(reserve("0.4")).when(reserve("0.4", epoch=2)).then(CostReserved)

    assert Decimal("0.4") == past.state.nodes[ROOT].reserved.usd
    assert 2 == fencing_epoch(release(epoch=1), past.state)


# I8: the vendor's count may be there the first time, and not the second.
def test_a_new_owner_that_estimates_higher_holds_what_was_granted():
    past = asked(reserve("0.4")).when(reserve("1.4", epoch=2)).then(CostReserved)

    assert Decimal("0.4") == past.state.nodes[ROOT].reserved.usd


def test_a_call_that_was_never_reserved_and_of_which_nothing_is_known_cost_nothing():
    past = asked(reserve("0.4")).when(settle(None, turn=2)).then(CostReleased)

    assert Decimal("0.4") == past.state.nodes[ROOT].reserved.usd


def test_what_is_released_of_one_call_frees_nothing_of_another():
    past = asked(reserve("0.4")).when(release(turn=2)).then(CostReleased)

    assert "granted" == said(past, reserve("0.4"))
    assert Decimal("0.4") == past.state.nodes[ROOT].reserved.usd


def test_how_a_call_was_closed_is_forgotten_when_a_later_one_is():
    past = asked(reserve("0.4"), settle("0.4"), reserve("0.1", turn=2), settle("0.1", turn=2))

    assert ["released", "settled"] == [
        closing_of(call(turn=turn), past.state).outcome for turn in (1, 2)
    ]


@pytest.mark.parametrize("command", [settle, release])
def test_an_owner_is_fenced_after_a_later_owner_closed_its_call(command):
    past = asked(reserve("0.1")).when(
        settle("0.1", epoch=2) if command is settle else release(epoch=2)
    )

    assert 2 == fencing_epoch(reserve("0.1", turn=2, epoch=1), past.state)


# Whatever was recorded is folded, also by two ledgers that opened it at once.
def test_a_budget_that_is_opened_twice_keeps_what_it_holds():
    reserved = asked(reserve("0.4")).facts[-1]

    once, twice = (BUDGET.replay([*[OPENED] * times, reserved, *[OPENED] * (times - 1)])
                   for times in (1, 2))  # fmt: skip

    assert once == twice


@pytest.mark.parametrize(
    "fact",
    [
        CostReserved(session=OTHER, effect="1.m", attempt=1, epoch=1, tokens=1, usd=Decimal(1)),
        CostSettled(session=OTHER, effect="1.m", attempt=1, epoch=1, tokens=1, usd=Decimal(1)),
        CostReleased(session=OTHER, effect="1.m", attempt=1, epoch=1),
        BudgetWarned(session=OTHER, limit="max_cost", spent=Decimal(1), of=Decimal(1)),
        BudgetOffered(sessions=(OTHER, ROOT)),
    ],
    ids=lambda fact: fact.type,
)
def test_a_fact_of_a_session_that_was_never_opened_is_folded(fact):
    assert OTHER not in BUDGET.replay([OPENED, fact]).nodes
