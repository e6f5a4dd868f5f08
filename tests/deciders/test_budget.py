"""The rules of one budget: reserve, settle, release (I8)."""

from decimal import Decimal

import pytest

from cueline.deciders.budget import (
    BUDGET,
    Amount,
    Answer,
    CallName,
    Raise,
    Release,
    Reserve,
    Settle,
    answer,
    closing,
    fencing_epoch,
)
from cueline.events.budget import (
    Allowance,
    BudgetOpened,
    BudgetRaised,
    BudgetRefused,
    BudgetWarned,
    CostReleased,
    CostReserved,
    CostSettled,
    RoomOffered,
)
from cueline.testing.given import given_past

ROOT, CHILD, OTHER = (f"session-default/{name}" for name in ("root", "child", "other"))
OPENED = BudgetOpened(session=ROOT, max_cost=Decimal(1))
JOINED = BudgetOpened(session=CHILD, parent=ROOT)


def path(session=ROOT, own=None):
    root = Allowance(session=ROOT, max_cost=Decimal(1))
    if session == ROOT:
        return (root,)
    return (Allowance(session=session, max_cost=own and Decimal(own)), root)


def call(session=ROOT, turn=1, attempt=1):
    return CallName(session, f"{turn}.m", attempt)


def reserve(usd, session=ROOT, *, turn=1, attempt=1, epoch=1, own=None):
    amount = Amount(10, Decimal(usd))
    return Reserve(call(session, turn, attempt), epoch, path(session, own), amount)


def settle(usd, session=ROOT, *, turn=1, attempt=1, epoch=1, tokens=10):
    amount = None if usd is None else Amount(tokens, Decimal(usd))
    return Settle(call(session, turn, attempt), epoch, path(session), amount)


def release(session=ROOT, turn=1, attempt=1, epoch=1):
    return Release(call(session, turn, attempt), epoch, path(session))


def raised(usd, message="inbox-default/root@2", session=ROOT, tokens=None):
    return Raise(session, path(session), tokens, usd and Decimal(usd), message)


def given(*facts):
    return given_past(BUDGET, *facts)


def asked(*commands):
    return given().when(*commands)


def said(past, command):
    return answer(command, past.when(command).state).verdict


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


def test_a_call_whose_cost_nobody_knows_is_settled_at_all_that_was_reserved():
    past = asked(reserve("0.9")).when(settle(None))

    past.then(CostSettled, BudgetWarned)
    assert (Decimal("0.9"), True) == (past.facts[0].usd, past.facts[0].estimated)


def test_settling_twice_is_settling_once():
    past = asked(reserve("0.5"), settle("0.2")).when(settle("0.2")).then_nothing()

    told = closing(call(), past.state)
    assert ("settled", Amount(10, Decimal("0.2"))) == (told.outcome, told.amount)
    assert {"max_cost": 0.2} == told.shares


# 000-020: nothing goes out once the limit is reached.
def test_what_was_spent_leaves_no_room():
    past = asked(reserve("1"), settle("0.95"))

    assert "exhausted" == said(past, reserve("0.1", turn=2))
    assert said_why(past, reserve("0.1", turn=2)).startswith("exhausted: max_cost 1 USD, 0.95 USD")


def said_why(past, command):
    return answer(command, past.when(command).state).why


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


def test_a_session_that_goes_on_without_closing_a_call_has_spent_all_of_it():
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


# Who is refused waits in line.


def refused(*needs):
    """Return a budget that one call fills, and sessions in line that need so much."""
    past = asked(reserve("1"))
    for place, usd in enumerate(needs):
        past.when(reserve(usd, f"session-default/w{place}")).then(BudgetOpened, BudgetRefused)
    return past


def told(*places):
    return RoomOffered(sessions=tuple(f"session-default/w{place}" for place in places))


def test_those_whom_the_room_fits_are_told_the_oldest_first():
    refused("0.4", "0.5", "0.2").when(settle("0.1", turn=1)).then(CostSettled, told(0, 1))


def test_one_that_does_not_fit_does_not_hold_up_those_behind_it():
    refused("0.9", "0.3").when(settle("0.6")).then(CostSettled, told(1))


def test_a_session_is_told_once_until_it_asks_again():
    past = refused("0.3", "0.6").when(settle("0.5")).then(CostSettled, told(0))

    past.when(reserve("0.1", turn=2), release(turn=2)).then(CostReleased)
    past.when(reserve("0.5", turn=3), reserve("0.3", "session-default/w0")).then(BudgetRefused)
    past.when(release(turn=3)).then(CostReleased, told(0))


def test_who_leaves_the_line_makes_way_for_those_behind():
    past = refused("0.4", "0.4").when(settle("0.5")).then(CostSettled, told(0))

    past.when(release("session-default/w0")).then(CostReleased, told(1))


def test_to_be_refused_again_changes_nothing():
    past = refused("0.4")

    past.when(reserve("0.4", "session-default/w0")).then_nothing()


def test_who_estimates_otherwise_waits_for_what_it_needs_now():
    past = refused("0.4").when(reserve("0.3", "session-default/w0")).then(BudgetRefused)

    past.when(settle("0.7")).then(CostSettled, told(0))


def test_who_is_busy_is_exhausted_once_the_room_is_spent():
    past = refused("0.4").when(settle("1"))

    past.when(reserve("0.4", "session-default/w0")).then(BudgetRefused)
    assert "exhausted" == past.facts[0].answer


# 000-020, C21: people are warned once.
def test_people_are_warned_once_when_four_fifths_are_spent():
    past = asked(reserve("0.8")).when(settle("0.8"))

    past.then(
        CostSettled,
        BudgetWarned(session=ROOT, limit="max_cost", spent=Decimal("0.8"), of=Decimal(1)),
    )
    past.when(reserve("0.1", turn=2), settle("0.1", turn=2)).then(CostSettled)


# 000-048
def test_a_raise_makes_room_and_tells_those_in_line():
    past = asked(reserve("1"), settle("1"), reserve("0.5", CHILD))

    past.when(raised("2")).then(
        BudgetRaised(session=ROOT, max_cost=Decimal(2), message="inbox-default/root@2"),
        RoomOffered(sessions=(CHILD,)),
    )
    assert "granted" == said(past, reserve("0.5", CHILD))


def test_a_raise_that_is_handed_over_twice_counts_once():
    asked(reserve("1"), raised("2"), raised("3", "other")).when(raised("2")).then_nothing()


@pytest.mark.parametrize("command", [raised("0.5"), raised("1"), raised(None, tokens=9)])
def test_a_limit_is_neither_lowered_nor_introduced(command):
    asked(reserve("1")).when(command).then_nothing()


def test_a_raised_limit_warns_anew():
    past = asked(reserve("1"), settle("0.9"), raised("2"), reserve("1", turn=2))

    past.when(settle("0.8", turn=2)).then(CostSettled, BudgetWarned)


def test_an_answer_is_one_shape():
    assert Answer("granted") == answer(reserve("0.1"), asked(reserve("0.1")).state)
