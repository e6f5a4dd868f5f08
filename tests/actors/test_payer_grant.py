"""What comes between a grant of the ledger and the call that it is for (I8)."""

import asyncio
from decimal import Decimal

from cueline.actors.cost_ledger import CostLedger
from cueline.deciders.budget import BUDGET as BUDGET_RULES
from cueline.deciders.budget import ModelCallName, Release
from cueline.deciders.session import Status
from cueline.events.budget import Allowance, CostSettled
from cueline.events.inbox import StopAsked
from cueline.events.session import ModelFailed, ModelStarted
from cueline.testing.clock import take_turns
from cueline.testing.crash import World
from cueline.testing.fakes import says
from tests.actors.priced import BUDGET, CENT, of_kind, scene
from tests.actors.session_harness import SESSION, Valve


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
        await breakers.record_failure(guard, f"other/{number}", "overloaded")


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
    release = Release(ModelCallName(SESSION, "1.m", 1), 1, top)
    await CostLedger(place.outside.journal).release(BUDGET, release)

    await place.begin()

    first = (await of_kind(place, ModelStarted))[0]
    assert ("1.m", 2) == (first.effect, first.attempt)
    assert Status.COMPLETED == (await place.state()).status
