"""How the limits of a session's time are kept while it is driven."""

from decimal import Decimal

from cueline.deciders.session import Status
from cueline.errors import ProviderUnavailableError
from cueline.events.agent import Limits
from cueline.events.budget import CostReserved
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, RaiseAsked
from cueline.events.message import Cost
from cueline.events.session import LimitWarned, ModelFailed, ModelReplied
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness, Valve


# 003-029: on a timer, also while a tool runs.
async def test_the_time_since_the_start_is_up_while_a_tool_runs():
    valve = Valve()
    limits = Limits(max_wall_seconds=100)
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve, limits=limits)
    world = await scene.begin()

    await scene.clock.advance(101)
    held = (await scene.state()).hold.cause
    valve.opened.set()
    await scene.clock.settle()

    assert Cause(code="limit_reached", limit="max_wall_seconds", of=100) == held
    assert Status.WAITING is (await scene.state()).status
    assert {"ToolReturned": 1, "ModelStarted": 1} == {
        kind: (await scene.count())[kind] for kind in ("ToolReturned", "ModelStarted")
    }
    assert [] == await world.host.active()


async def test_a_model_call_counts_as_work_also_when_it_fails():
    # 003-027: the clock is the shell's.
    async def slow():
        await scene.clock.sleep(30)
        return says("done")

    async def slow_to_fail():
        await scene.clock.sleep(12)
        raise ProviderUnavailableError("timeout", "too late", None)

    scene = SessionHarness({(1, 1): slow_to_fail, (1, 2): slow})
    await scene.begin()
    await scene.clock.advance(60)

    assert 12 == (await scene.last(ModelFailed)).seconds
    assert 30 == (await scene.last(ModelReplied)).seconds
    assert 42 == (await scene.state()).turn.active_seconds


async def test_the_model_is_told_to_wrap_up_and_the_session_goes_on():
    async def slow():
        await scene.clock.sleep(9)
        return asks_for(("pay", {}))

    scene = SessionHarness([slow, says("done")], limits=Limits(max_active_seconds=10))
    await scene.begin()
    await scene.clock.advance(10)

    assert [0.8, 0.9] == [
        fact.share for fact in await scene.outside.facts("session-default/s")
        if isinstance(fact, LimitWarned)
    ]  # fmt: skip
    assert "You are approaching the time budget. Wrap up current work." in await scene.told()
    assert Status.COMPLETED is (await scene.state()).status


async def test_a_session_at_its_time_limit_reads_messages_and_calls_no_model():
    async def slow():
        await scene.clock.sleep(11)
        return asks_for(("pay", {}))

    scene = SessionHarness([slow, says("done")], limits=Limits(max_active_seconds=10))
    await scene.begin()
    await scene.clock.advance(12)
    await scene.say(MessageSent(lane="note", text="Go on."))

    assert 1 == (await scene.count())["MessageReceived"]
    assert 1 == (await scene.count())["ModelStarted"]
    assert "limit_reached" == (await scene.state()).hold.cause.code


def costing(usd, *replies, **limits):
    """Return a scene in which each call costs *usd*, and nothing is reserved for it."""
    place = SessionHarness([*replies, says("done")], limits=Limits(**limits))
    place.outside.bound = lambda agent, sent, counted: (sent, Decimal(0))
    place.outside.price = lambda *_: Cost(usd=Decimal(usd), prices="list")
    return place


# C21, 000-020: the ladder of money; the ledger stops, this warns.
async def test_people_and_the_agent_are_told_of_the_money_once():
    scene = costing("0.28", *[asks_for(("read", {}))] * 3, max_cost=1)
    await scene.begin()

    warnings = [f for f in await scene.outside.facts(SESSION) if isinstance(f, LimitWarned)]
    assert [("max_cost", 0.8, 0.84)] == [(w.limit, w.share, w.used) for w in warnings]
    assert Status.COMPLETED is (await scene.state()).status


async def test_the_agent_is_told_to_wrap_up_when_the_money_is_nearly_spent():
    scene = costing("0.31", *[asks_for(("read", {}))] * 3, max_cost=1)
    await scene.begin()

    assert "You are approaching the cost budget. Wrap up current work." in await scene.told()


async def test_of_a_raised_limit_of_money_is_warned_anew():
    scene = costing("0.5", *[asks_for(("read", {}))] * 4, max_cost=1)
    await scene.begin()
    await scene.say(RaiseAsked(max_cost=Decimal("2.4")))

    shares = [f.share for f in await scene.outside.facts(SESSION) if isinstance(f, LimitWarned)]
    assert [0.8, 0.9, 0.8] == shares


# 004-009, 004-024: who estimates is a collaborator, and what was estimated is in the log.
async def test_the_estimate_of_a_call_is_recorded_and_a_replay_makes_none():
    def estimate(agent, sent, counted):
        estimates.append(Decimal(len(estimates) + 1) / 100)
        return sent, estimates[-1]

    estimates = []
    scene = costing("0.01", asks_for(("read", {})), max_cost=1)
    scene.outside.bound = estimate
    await scene.begin(open=True)

    await (await scene.world()).kill()
    await scene.world()
    facts = await scene.outside.facts("budget-default/s")

    assert [Decimal("0.01"), Decimal("0.02")] == estimates
    assert estimates == [fact.usd for fact in facts if isinstance(fact, CostReserved)]
