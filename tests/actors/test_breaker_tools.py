"""Tools that are left alone while they keep failing."""

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.codes import Cause
from cueline.events.session import SessionContinued
from cueline.testing.fakes import agent_spec, asks_for, says, tool_spec
from tests.actors.crowd import AGENT, Crowd
from tests.actors.session_harness import fine

GUARDED = BreakerPolicy(threshold=2)


def tool_crowd(outcome, *beside, **policy):
    """Return sessions that search, and call other tools beside that."""
    breaker = GUARDED.model_copy(update=policy)
    search = tool_spec("search", "read_only").model_copy(update={"breaker": breaker})
    crowd = Crowd(retry={"max_retries": 0})
    crowd.agent = agent_spec(search, tool_spec("read", "read_only"), **AGENT)

    async def reply(request, _deltas):
        return (
            says("Well.")
            if request.turn > 1
            else asks_for(*((name, {}) for name in ("search", *beside)))
        )

    async def act(order):
        return await outcome(order)

    crowd.provider.reply = reply
    crowd.outside.executor.tools = {"search": act, "read": fine}
    return crowd


async def times_out(order):
    raise ToolFailedError("timeout", "no answer")


async def test_a_tool_that_asks_for_a_breaker_has_one():
    crowd = tool_crowd(times_out)
    await crowd.start(2)
    await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    (wait,) = await crowd.waits(late)
    cause = Cause(code="breaker_open", dependency="tool search", failure="timeout")
    assert (cause, ("1.0",)) == (wait.cause, wait.effects)
    assert 2 == len(crowd.outside.executor.starts)


# 004-019: degrade.
async def test_an_agent_may_continue_without_a_blocked_tool():
    crowd = tool_crowd(times_out, on_open="fallback")
    await crowd.start(2)
    await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert "completed" == await crowd.status(late)
    told = (await crowd.outside.transcript(late))[-2].decode()
    assert "circuit_open: tool search keeps failing (timeout)" in told


# D37: one of them tries, beside a call of a tool that has no breaker.
async def test_sessions_that_wait_for_a_breaker_continue_after_a_successful_probe():
    ill = True

    async def search(order):
        if ill:
            raise ToolFailedError("timeout", "no answer")
        return "found"

    crowd = tool_crowd(search, "read")
    await crowd.start(2)
    world = await crowd.world()
    late = await crowd.start(4)
    await crowd.clock.settle()
    assert {"waiting"} == {await crowd.status(stream) for stream in late}

    ill = False
    await crowd.clock.advance(60)
    await crowd.tick(world)

    assert {"completed"} == {await crowd.status(stream) for stream in late}
    # Who did not try goes on when it closes, and not only at its deadline.
    waited = [fact.by for stream in late for fact in await crowd.outside.facts(stream)
              if isinstance(fact, SessionContinued)]  # fmt: skip
    assert "breaker" in waited


async def test_a_tool_that_says_when_is_left_alone_until_then():
    async def slow_down(order):
        raise ToolFailedError("rate_limited", "slow down", 30.0)

    crowd = tool_crowd(slow_down)
    await crowd.start()
    await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    (wait,) = await crowd.waits(late)
    assert 30 == (wait.deadline_at - crowd.clock.now()).total_seconds()
