"""Tools that are left alone while they keep failing."""

from cueline.errors import ToolFailedError
from cueline.events.agent import BreakerPolicy
from cueline.testing.fakes import agent_spec, asks_for, says, tool_spec
from tests.actors.crowd import AGENT, Crowd

GUARDED = BreakerPolicy(threshold=2)


def tool_crowd(outcome, **policy):
    breaker = GUARDED.model_copy(update=policy)
    search = tool_spec("search", "read_only").model_copy(update={"breaker": breaker})
    crowd = Crowd(retry={"max_retries": 0})
    crowd.agent = agent_spec(search, **AGENT)

    async def reply(request):
        return says("Well.") if request.turn > 1 else asks_for(("search", {}))

    async def act(order):
        return await outcome(order)

    crowd.provider.reply = reply
    crowd.outside.executor.tools = {"search": act}
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
    assert ("tool search keeps failing (timeout)", ("1.0",)) == (wait.why, wait.effects)
    assert 2 == len(crowd.outside.executor.starts)


# 004-019: degrade.
async def test_an_agent_may_do_without_a_tool_that_is_left_alone():
    crowd = tool_crowd(times_out, on_open="fallback")
    await crowd.start(2)
    await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert "completed" == await crowd.status(late)
    told = (await crowd.outside.transcript(late))[-2].decode()
    assert "circuit_open: tool search keeps failing (timeout)" in told


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
