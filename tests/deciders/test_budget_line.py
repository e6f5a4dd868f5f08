"""Who is refused because others hold the room waits in line (I8)."""

from cueline.deciders.budget import fencing_epoch
from cueline.events.budget import (
    BudgetOffered,
    BudgetOpened,
    BudgetRefused,
    CostReleased,
    CostReserved,
    CostSettled,
)
from tests.deciders.budget_example import asked, release, reserve, settle


def refused(*needs):
    """Return a budget that one call fills, and sessions in line that need so much."""
    past = asked(reserve("1"))
    for place, usd in enumerate(needs):
        past.when(reserve(usd, f"session-default/w{place}")).then(BudgetOpened, BudgetRefused)
    return past


def told(*places):
    return BudgetOffered(sessions=tuple(f"session-default/w{place}" for place in places))


def test_sessions_that_fit_get_offers_oldest_first():
    refused("0.4", "0.5", "0.2").when(settle("0.1", turn=1)).then(CostSettled, told(0, 1))


def test_one_that_does_not_fit_does_not_hold_up_those_behind_it():
    refused("0.9", "0.3").when(settle("0.6")).then(CostSettled, told(1))


def test_a_session_gets_one_offer_until_it_asks_again():
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


# I3
def test_a_new_owner_that_is_refused_too_fences_the_former_one():
    past = refused("0.4").when(reserve("0.4", "session-default/w0", epoch=2)).then(BudgetRefused)

    late = reserve("0.4", "session-default/w0", epoch=1)
    assert 2 == fencing_epoch(late, past.state)


def test_who_estimates_otherwise_waits_for_what_it_needs_now():
    past = refused("0.4").when(reserve("0.3", "session-default/w0")).then(BudgetRefused)

    past.when(settle("0.7")).then(CostSettled, told(0))


def test_who_is_busy_is_exhausted_once_the_room_is_spent():
    past = refused("0.4").when(settle("1"))

    past.when(reserve("0.4", "session-default/w0")).then(BudgetRefused)
    assert "exhausted" == past.facts[0].answer


def test_who_waits_longest_loses_no_place_by_asking_again():
    past = refused("0.4", "0.4").when(reserve("0.3", "session-default/w0"))

    assert ("session-default/w0", "session-default/w1") == past.state.queue


# It was kept for the one who was told, and is not needed now.
def test_who_was_told_and_asks_for_more_makes_way_for_those_behind():
    past = refused("0.5", "0.4").when(settle("0.5")).then(CostSettled, told(0))

    past.when(reserve("0.9", "session-default/w0")).then(BudgetRefused, told(1))


def test_who_takes_the_room_of_the_one_who_was_told_leaves_the_rest_to_a_smaller_one():
    past = refused("0.5", "0.3").when(settle("0.5")).then(CostSettled, told(0))

    past.when(reserve("0.2", turn=2)).then(CostReserved, told(1))
