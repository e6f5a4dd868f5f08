"""What a call is estimated to cost, and what people are told of it (004-009, 004-024)."""

import asyncio
from decimal import Decimal

from cueline.events.agent import Limits
from cueline.events.event_text import rationale_text
from cueline.events.inbox import StopAsked
from cueline.events.message import Estimate
from cueline.events.session import ToolSkipped, ToolStarted
from cueline.testing.fakes import asks_for, says, tool_spec
from tests.actors.asked import DEPLOY, GATE, answer, wake
from tests.actors.session_harness import SESSION, SessionHarness


def estimating(known, reply=DEPLOY, *, tools=(), limits=None, **policy):
    """Return a scene whose tool estimates each call: *known*, by where it deploys to."""
    dear = tool_spec("deploy").model_copy(update={"estimates": True})
    agent = {"policy": {"approval": ["cost"], **policy}, "limits": limits or Limits()}
    scene = SessionHarness([reply, says("done")], tools=(dear, *tools), **agent)
    scene.estimated = []

    async def estimate(_, arguments):
        scene.estimated.append(arguments)
        return known[arguments.get("to")]

    scene.outside.estimate = estimate
    return scene


DEAR = Estimate(usd=Decimal("0.75"))


async def test_an_estimate_is_recorded_with_the_reply_and_never_made_again():
    # 004-009, 004-024, I10
    scene = estimating({None: DEAR})
    first = await scene.begin()
    await first.kill()

    await wake(scene)
    await scene.decide()

    assert {"1.0": DEAR} == (await scene.outside.facts(SESSION))[3].estimates
    assert 1 == len(scene.estimated)
    assert Decimal("0.75") == (await scene.last(ToolStarted)).usd


async def test_who_is_asked_about_an_unknown_cost_is_told_why():
    scene = estimating({None: Estimate(problem="KeyError: list")})
    await scene.begin()

    opened = (await scene.outside.facts(GATE))[0]

    assert "and nobody knows what it will cost: KeyError: list" in rationale_text(opened)


async def test_an_edited_call_is_estimated_again():
    # C15: an edit is judged like any call.
    scene = estimating({None: DEAR, "moon": Estimate(usd=Decimal(3))}, deny_from_usd="2")
    await scene.begin()

    await answer(scene, edit={"to": "moon"})

    assert [] == scene.executor.starts
    assert "cost cap" == (await scene.last(ToolSkipped)).rule


async def test_a_reply_is_not_lost_for_an_estimate_that_is_stopped():
    scene = estimating({})

    async def never(*_):
        await asyncio.Event().wait()

    scene.outside.estimate = never
    await scene.begin()
    await scene.say(StopAsked())

    types = await scene.types()
    assert "ModelReplied" in types
    assert "SessionStopped" == types[-1]


async def test_only_what_can_run_and_estimates_itself_is_estimated():
    calls = asks_for(("deploy", {"n": 1}), ("deploy", {"bad": 2}), ("read", {}), ("invented", {}))
    scene = estimating({None: DEAR}, calls, tools=[tool_spec("read", "read_only")])
    scene.outside.check_call = lambda tool, arguments: "no" if "bad" in arguments else None
    await scene.begin()

    assert [{"n": 1}] == scene.estimated


async def test_no_estimate_is_made_of_a_call_that_is_one_too_many():
    # C25: a reply may ask for thousands.
    deploys = asks_for(*[("deploy", {"n": n}) for n in range(3)])
    scene = estimating({None: DEAR}, deploys, limits=Limits(max_tool_calls_per_turn=2))
    await scene.begin()

    assert [{"n": 0}, {"n": 1}] == scene.estimated


async def test_the_estimates_of_a_reply_are_made_beside_each_other():
    # 000-002: until they are made, a reply that is paid for is nowhere recorded.
    scene = estimating({}, asks_for(("deploy", {}), ("deploy", {}), ("deploy", {})))

    async def slowly(*_):
        await scene.clock.sleep(5)
        return Estimate(usd=Decimal(0))

    scene.outside.estimate = slowly
    await scene.begin()
    await scene.clock.advance(5)

    assert ["1.0", "1.1", "1.2"] == list((await scene.outside.facts(SESSION))[3].estimates)
