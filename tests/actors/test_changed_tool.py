"""A tool that is another than was recorded, where sessions are driven."""

from cueline.errors import ToolChangedError
from cueline.events.codes import Cause
from cueline.events.inbox import ResumeAsked
from cueline.events.session import SessionWaiting
from cueline.testing.fakes import asks_for, says, tool_spec
from tests.actors.session_harness import SessionHarness

NEW = tool_spec("pay").model_copy(update={"version": "2", "digest": "pay-2"})


async def pay(order):
    """Be version 2."""
    if order.tool.version != "2":
        raise ToolChangedError("shop.py:pay", "version is '2', and was '1'")
    return "paid"


async def test_a_session_waits_and_goes_on_with_the_tool_that_a_person_accepts():
    scene = SessionHarness([asks_for(("pay", {})), asks_for(("pay", {})), says("done")], act=pay)
    await scene.begin()
    waiting = await scene.last(SessionWaiting)
    message = "shop.py:pay: version is '2', and was '1'"
    cause = Cause(code="tool_failed", failure="tool_changed", message=message)
    assert ("operator", cause) == (waiting.kind, waiting.cause)

    await scene.say(ResumeAsked(tools=(NEW,)))

    assert 1 == (await scene.count())["ToolSkipped"]
    assert 1 == (await scene.count())["ToolReturned"]
    assert "SessionCompleted" == (await scene.types())[-1]
