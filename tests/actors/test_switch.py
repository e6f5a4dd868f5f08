"""Another model in the middle of a session, where sessions are driven."""

from cueline.events.agent import ModelChoice
from cueline.events.inbox import MessageSent, ModelChangeAsked
from cueline.events.session import AgentChanged, PromptPrefixChanged
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness, Valve

OTHER = ModelChangeAsked(model=ModelChoice(provider="other", model="n"))


def asked(scene):
    return [(request.agent.provider, request.effect) for request in scene.model.asked]


async def test_a_tool_in_flight_goes_on_and_the_other_model_is_told_its_result():
    valve = Valve()
    scene = SessionHarness([asks_for(("read", {})), says("done")], act=valve)
    await scene.begin()

    await scene.say(OTHER)
    assert AgentChanged(model=OTHER.model) == await scene.last(AgentChanged)
    valve.opened.set()
    await scene.clock.settle()

    assert [("fake", "1.m"), ("other", "2.m")] == asked(scene)
    assert "model_switched" == (await scene.last(PromptPrefixChanged)).reason
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_message_after_the_change_is_answered_by_the_other_model():
    scene = SessionHarness([says("one"), says("two")])
    await scene.begin(open=True)

    await scene.say(OTHER, MessageSent(lane="note", text="And?"))

    assert [("fake", "1.m"), ("other", "2.m")] == asked(scene)
    assert "other" == (await scene.state()).agent.provider
