"""A session that asks the ledger before it asks the model."""

import asyncio
from contextlib import closing
from decimal import Decimal

import pytest

from cueline.actors.cost_ledger import CostLedger
from cueline.console.tally import Tally
from cueline.deciders.budget import BUDGET as BUDGET_RULES
from cueline.deciders.budget import Amount, CallName, Release, Reserve
from cueline.deciders.session import Status
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import Limits
from cueline.events.budget import Allowance, BudgetRaised, BudgetWarned, CostReserved, CostSettled
from cueline.events.inbox import RaiseAsked, StopAsked
from cueline.events.message import Cost, Usage
from cueline.events.session import ModelFailed, ModelStarted, ReservationClosed, SessionWaiting
from cueline.projections.cost import spent, total
from cueline.projections.views import Views
from cueline.testing.clock import take_turns
from cueline.testing.crash import World
from cueline.testing.fakes import TurnModel, asks_for, says
from tests.actors.scene import SESSION, Scene, Valve

BUDGET = "budget-default/s"
CENT = Decimal("0.01")
SAID = [asks_for(("read", {})), asks_for(("read", {})), says("Done.")]


def scene(replies=SAID, **limits):
    """Return a scene in which a call may cost 10 cents, and costs 4."""
    limits = limits or {"max_cost": Decimal(1)}
    place = Scene(replies, limits=Limits(**limits))
    place.outside.bound = lambda agent, sent, counted: (sent, 10 * CENT)
    place.outside.price = lambda agent, model, usage: Cost(usd=4 * CENT, prices="list")
    return place


async def of_kind(place, kind, stream=SESSION):
    return [fact for fact in await place.outside.facts(stream) if isinstance(fact, kind)]


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
async def test_a_session_without_room_waits_and_goes_on_after_a_raise():
    place = scene(max_cost=12 * CENT)
    await place.begin()
    waits = (await place.state()).waiting

    assert 1 == len(place.model.asked)
    assert ("budget", None) == (waits.kind, waits.deadline_at)
    assert waits.why == "exhausted: max_cost 0.12 USD, 0.04 USD spent, a call may take 0.1 USD"
    await place.say(RaiseAsked(max_cost=Decimal(1)))
    assert Status.COMPLETED == (await place.state()).status
    assert [Decimal(1)] == [f.max_cost for f in await of_kind(place, BudgetRaised, BUDGET)]


# I14, D8: others hold the room; who is refused asks again in a minute, or when there is room.
async def test_who_is_busy_waits_a_minute_at_most_and_goes_on_when_there_is_room():
    place = scene()
    top = Allowance(session=SESSION, max_cost=Decimal(1))
    other = CallName("session-default/other", "1.m", 1)
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


REFUSED = ProviderRefusedError("refused", "no", {"input": 9, "output": 7})


# I8, 000-019: what is known of a failed call is no estimate.
async def test_a_call_that_failed_is_settled_at_what_it_used_where_that_was_told():
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

    tally = Tally()
    for fact in await place.outside.facts(SESSION):
        tally = tally.after(fact, place.clock.now())
    with closing(Views(":memory:")) as views:
        await views.catch_up(place.outside.store)
        shown = total(spent(views.db)).usd

    assert 4 * CENT == tally.cost == shown


async def test_who_waits_for_room_holds_nothing():
    # I12
    place = scene(max_cost=5 * CENT)
    world = await place.begin()

    assert [] == await world.host.active()
    assert [] == [f for f in await of_kind(place, SessionWaiting) if f.kind != "budget"]


class CountingModel(TurnModel):
    """A model whose vendor counts prompts, as a test says."""

    def __init__(self, count):
        super().__init__(SAID)
        self.says = count
        self.counted = []

    async def count(self, request):
        self.counted.append(request)
        if isinstance(self.says, Exception):
            raise self.says
        return await self.says() if callable(self.says) else self.says


def counting(count, **limits):
    """Return a scene that reserves what was counted, else nothing."""
    place = scene(**limits)
    place.model = place.outside.model = CountingModel(count)
    place.outside.bound = lambda agent, sent, counted: (0 if counted is None else counted, CENT)
    return place


# I8, C23: the count is in the log, so a replay asks for none.
async def test_what_the_vendor_counts_is_reserved_and_recorded():
    place = counting(7, max_tokens=100_000)
    await (await place.begin(open=True)).kill()
    await place.world()

    assert [7, 7, 7] == [fact.tokens for fact in await of_kind(place, CostReserved, BUDGET)]
    assert place.model.asked == place.model.counted


async def test_nothing_is_counted_for_a_session_without_a_limit():
    place = counting(7, max_turns=9)
    await place.begin()

    assert Status.COMPLETED == (await place.state()).status
    assert [] == place.model.counted


NO_COUNTS = {
    "no vendor": ProviderUnavailableError("timeout", "silence"),
    "a bug": ValueError("oh"),
    "none": None,
    "nothing": 0,
    "less than nothing": -5,
}


@pytest.mark.parametrize("count", NO_COUNTS.values(), ids=NO_COUNTS)
async def test_without_a_count_the_call_is_made_all_the_same(count):
    place = counting(count, max_tokens=100_000)
    await place.begin()

    assert [0, 0, 0] == [fact.tokens for fact in await of_kind(place, CostReserved, BUDGET)]
    # It was no attempt: nothing is recorded of it, and it was not tried again.
    assert place.model.asked == place.model.counted
    assert Status.COMPLETED == (await place.state()).status


async def test_a_count_ends_with_its_reservation():
    valve = Valve(7)
    place = counting(valve, max_tokens=100_000)
    await (await place.begin()).kill()

    assert (1, 1) == (valve.began, valve.cancelled)
    assert [] == await place.outside.facts(BUDGET)


class Interrupting:
    """A ledger after whose grants something else happens first."""

    def __init__(self, ledger, happens):
        self._ledger = ledger
        self._happens = happens

    async def reserve(self, *asked):
        answer = await self._ledger.reserve(*asked)
        await self._happens()
        return answer

    def __getattr__(self, name):
        return getattr(self._ledger, name)


# 000-018, I6: the call is cancelled before it took its first step.
async def test_a_stop_that_comes_with_the_grant_ends_the_session():
    place = scene([Valve(says("Never."))])

    async def stop():
        await place.outside.say(SESSION, StopAsked(reason="enough"))

    place.outside.ledger = Interrupting(CostLedger(place.outside.journal), stop)
    await place.begin()

    assert Status.STOPPED == (await place.state()).status
    assert "cancelled" == (await place.last(ModelFailed)).kind
    assert [10 * CENT] == [fact.usd for fact in await of_kind(place, CostSettled, BUDGET)]


async def fail(world, agent):
    """Open the breaker of an agent's model, as other sessions would."""
    breakers = world.host._breakers
    guard = breakers.of_model("default", agent)
    for number in range(guard.policy.threshold):
        await breakers.ill(guard, f"other/{number}", "overloaded")


async def held(place):
    """Return what the budget holds for calls."""
    return BUDGET_RULES.replay(await place.outside.facts(BUDGET)).nodes[SESSION].held


async def test_a_grant_that_comes_to_a_host_that_drains_is_given_back():
    # 000-068: it stops accepting, records, releases; its neighbours need the room.
    place, drains = scene(), []

    async def drain():
        if not drains:
            drains.append(asyncio.create_task(world.host.drain(5)))
            await take_turns()

    place.outside.ledger = Interrupting(CostLedger(place.outside.journal), drain)
    world = World(place.outside)
    await place.outside.start("s", place.agent)
    await asyncio.gather(world.dispatcher.tick(), place.clock.settle())
    await drains[0]

    assert ["BudgetOpened", "CostReserved", "CostReleased"] == await place.outside.types(BUDGET)
    assert 0 == len(place.model.asked)
    await place.world()
    assert Status.COMPLETED == (await place.state()).status


async def test_a_breaker_that_opens_before_the_grant_keeps_the_call_back():
    # 000-007, D37: it was closed when room was asked for; others get the room meanwhile.
    place = scene([says("Done.")])

    async def fail_elsewhere():
        await fail(world, place.agent)

    place.outside.ledger = Interrupting(CostLedger(place.outside.journal), fail_elsewhere)
    world = World(place.outside)
    await place.outside.start("s", place.agent)
    await world.rest()
    assert ("breaker", 0) == ((await place.state()).waiting.kind, len(place.model.asked))
    assert await held(place) is None

    await place.clock.advance(61)
    await world.rest(within=1)
    assert ("completed", 1) == ((await place.state()).status, len(place.model.asked))
    assert [4 * CENT] == [fact.usd for fact in await of_kind(place, CostSettled, BUDGET)]


# I8, I12: nobody knows any more that room was held, and nothing is for as long as it waits.
async def test_who_dies_between_the_grant_and_an_open_breaker_leaves_no_room_held():
    place = scene([says("Done.")])

    async def fail_and_hang():
        await fail(first, place.agent)
        await asyncio.Event().wait()

    place.outside.ledger = Interrupting(CostLedger(place.outside.journal), fail_and_hang)
    first = World(place.outside)
    await place.outside.start("s", place.agent)
    await place.clock.settle()
    await first.kill()
    assert await held(place) is not None

    place.outside.ledger = None
    second = World(place.outside)
    await second.rest()
    assert ("breaker", None) == ((await place.state()).waiting.kind, await held(place))

    await place.clock.advance(61)
    await second.rest(within=1)
    assert ("completed", 1) == ((await place.state()).status, len(place.model.asked))


async def test_a_call_that_the_ledger_has_closed_is_made_as_another_attempt():
    # I8: a former owner's release may arrive late, and bars the attempt.
    place = scene()
    top = (Allowance(session=SESSION, max_cost=Decimal(1)),)
    release = Release(CallName(SESSION, "1.m", 1), 1, top)
    await CostLedger(place.outside.journal).release(BUDGET, release)

    await place.begin()

    first = (await of_kind(place, ModelStarted))[0]
    assert ("1.m", 2) == (first.effect, first.attempt)
    assert Status.COMPLETED == (await place.state()).status
