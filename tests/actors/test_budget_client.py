"""A session that asks the ledger before it asks the model."""

from contextlib import closing
from decimal import Decimal

import pytest

from cueline.actors.cost_ledger import CostLedger
from cueline.deciders.budget import Amount, ModelCallName, Release, Reserve
from cueline.deciders.session import Status
from cueline.errors import ProviderRefusedError
from cueline.events.budget import Allowance, BudgetRaised, BudgetWarned, CostReserved, CostSettled
from cueline.events.codes import Cause, Refusal
from cueline.events.inbox import RaiseAsked
from cueline.events.message import Cost, Usage
from cueline.events.session import (
    MessageRefused,
    ModelFailed,
    ModelStarted,
    ReservationClosed,
    SessionWaiting,
)
from cueline.projections.cost import spent, total
from cueline.projections.summary import Summary
from cueline.projections.views import Views
from cueline.testing.fakes import says
from tests.actors.priced import BUDGET, CENT, of_kind, scene
from tests.actors.session_harness import SESSION


# 000-003, C23
async def test_each_call_is_granted_before_and_paid_after():
    place = scene()
    await place.begin()

    reserved = await of_kind(place, CostReserved, BUDGET)
    settled = await of_kind(place, CostSettled, BUDGET)
    grants = [fact.grant for fact in await of_kind(place, ModelStarted)]
    assert [f"{SESSION}/{turn}.m/1" for turn in (1, 2, 3)] == grants
    assert [10 * CENT] * 3 == [fact.usd for fact in reserved]
    assert [4 * CENT] * 3 == [fact.usd for fact in settled]
    assert Status.COMPLETED == (await place.state()).status
    assert [0.04, 0.08, 0.12] == [
        fact.shares["max_cost"] for fact in await of_kind(place, ReservationClosed)
    ]


async def test_a_session_without_a_limit_has_no_budget():
    place = scene(max_turns=9)
    await place.begin()

    assert Status.COMPLETED == (await place.state()).status
    assert [] == await place.outside.facts(BUDGET)


# 000-018, 000-020, D8, C21: the session stops before the call, and has not failed.
async def test_a_session_without_budget_waits_and_continues_after_a_raise():
    place = scene(max_cost=12 * CENT)
    await place.begin()
    waits = (await place.state()).waiting

    assert 1 == len(place.model.asked)
    assert ("budget", None) == (waits.kind, waits.deadline_at)
    assert waits.cause == Cause(
        code="budget_exhausted",
        limit="max_cost",
        of=12 * CENT,
        spent=4 * CENT,
        need=10 * CENT,
    )
    await place.say(RaiseAsked(max_cost=Decimal(1)))
    assert Status.COMPLETED == (await place.state()).status
    assert [Decimal(1)] == [f.max_cost for f in await of_kind(place, BudgetRaised, BUDGET)]


async def test_a_raise_that_the_session_refuses_raises_nothing_at_the_ledger():
    place = scene(max_cost=12 * CENT)
    await place.begin()

    await place.say(RaiseAsked(max_cost=CENT), RaiseAsked(max_tokens=10**6))

    refused = [fact.refusal for fact in await of_kind(place, MessageRefused)]
    assert refused == [
        Refusal(code="not_higher", limit="max_cost", of=12 * CENT),
        Refusal(code="no_such_limit", limit="max_tokens"),
    ]
    assert [] == await of_kind(place, BudgetRaised, BUDGET)
    assert Status.WAITING == (await place.state()).status


# I14, D8: others hold the room; who is refused asks again in a minute, or when there is room.
async def test_who_is_busy_waits_a_minute_at_most_and_goes_on_when_there_is_room():
    place = scene()
    top = Allowance(session=SESSION, max_cost=Decimal(1))
    other = ModelCallName("session-default/other", "1.m", 1)
    path = (Allowance(session=other.session), top)
    ledger = CostLedger(place.outside.journal)
    await ledger.reserve(BUDGET, Reserve(other, 1, path, Amount(1, 95 * CENT)))
    world = await place.begin()
    waits = (await place.state()).waiting
    assert ("budget", False, 60) == (
        waits.kind, waits.exhausted, (waits.deadline_at - place.clock.now()).total_seconds()
    )  # fmt: skip

    await place.clock.advance(60)
    await world.rest(within=1)
    again = (await place.state()).waiting
    assert 60 == (again.deadline_at - waits.deadline_at).total_seconds()
    await ledger.release(BUDGET, Release(other, 1, path))
    await place.clock.settle()

    assert Status.COMPLETED == (await place.state()).status


async def test_people_are_warned_in_the_budget_once():
    place = scene(max_cost=14 * CENT, max_tokens=100_000)
    place.outside.price = lambda *_: Cost(usd=Decimal("0.12"), prices="list")
    await place.begin()

    (warned,) = await of_kind(place, BudgetWarned, BUDGET)
    assert (Decimal("0.12"), 14 * CENT) == (warned.spent, warned.of)


# 000-018: tokens are counted with those that came from the cache.
async def test_tokens_are_settled_at_what_was_used():
    used = Usage(input=5, output=3, cache_read=2, cache_write=1)
    place = scene([says_with(used)], max_tokens=1000)
    await place.begin()

    assert [11] == [fact.tokens for fact in await of_kind(place, CostSettled, BUDGET)]


def says_with(usage):
    reply = says("Done.")
    return type(reply)(
        content=reply.content, stop_reason=reply.stop_reason, usage=usage, model=reply.model
    )


# 000-019: a price that nobody knows counts only where money is limited.
@pytest.mark.parametrize("limits", [{"max_tokens": 100_000}, {"max_cost": Decimal(1)}])
async def test_a_call_without_a_price_is_settled_at_nothing(limits):
    place = scene(**limits)
    place.outside.bound = lambda agent, sent, counted: (sent, None)
    place.outside.price = lambda *_: None
    await place.begin()

    assert {Decimal(0)} == {fact.usd for fact in await of_kind(place, CostSettled, BUDGET)}


# I8: a reply that tells no use counts as all that was reserved, in every sum.
async def test_a_reply_that_tells_no_use_is_settled_at_its_reservation():
    place = scene([says("Done.")])
    place.outside.price = lambda *_: Cost(usd=Decimal(0), prices="list")
    await place.begin()

    (settled,) = await of_kind(place, CostSettled, BUDGET)
    assert (10 * CENT, True) == (settled.usd, settled.estimated)
    with closing(Views(":memory:")) as views:
        await views.catch_up(place.outside.store)
        assert 10 * CENT == total(spent(views.db)).estimated_cost


REFUSED = ProviderRefusedError("refused", "no", used={"input": 9, "output": 7})


# I8, 000-019: what is known of a failed call is no estimate.
async def test_a_failed_call_is_settled_at_its_reported_usage():
    place = scene([REFUSED])
    await place.begin()

    failed = await place.last(ModelFailed)
    (settled,) = await of_kind(place, CostSettled, BUDGET)
    assert (16, 4 * CENT, False) == (settled.tokens, settled.usd, settled.estimated)
    assert (Usage(input=9, output=7), 4 * CENT) == (failed.usage, failed.cost.usd)


# 000-021: the sum over the log, however the call ended, and whoever was asked for room.
@pytest.mark.parametrize("limits", [{"max_turns": 9}, {"max_cost": Decimal(1)}])
async def test_what_a_failed_call_cost_is_in_every_sum(limits):
    place = scene([REFUSED], **limits)
    await place.begin()

    tally = Summary()
    for fact in await place.outside.facts(SESSION):
        tally = tally.after(fact, place.clock.now())
    with closing(Views(":memory:")) as views:
        await views.catch_up(place.outside.store)
        shown = total(spent(views.db)).cost

    assert 4 * CENT == tally.cost == shown


async def test_who_waits_for_room_holds_nothing():
    # I12
    place = scene(max_cost=5 * CENT)
    world = await place.begin()

    assert [] == await world.host.active()
    assert [] == [f for f in await of_kind(place, SessionWaiting) if f.kind != "budget"]
