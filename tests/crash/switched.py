"""A session whose model changes, and whose old messages become a summary."""

from functools import partial

from msgspec.structs import replace

from cueline.events.agent import ModelChoice
from cueline.events.inbox import ModelChangeAsked
from cueline.events.message import Usage
from cueline.testing.crash import Outside
from cueline.testing.fakes import (
    JournalingExecutor,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)
from tests.crash import story

TOOLS = (tool_spec("read", "read_only"), tool_spec("pay"), tool_spec("deploy", sensitive=True))
OTHER = ModelChoice(provider="other", model="n", context_window=1000)


def filled(reply, tokens):
    return replace(reply, usage=Usage(input=tokens, output=10))


SAID = [
    filled(asks_for(("read", {"n": 1}), ("read", {"n": 2})), 100),
    filled(asks_for(("deploy", {"n": 3}), ("read", {"n": 4})), 200),
    filled(asks_for(("read", {"n": 5})), 900),
    filled(asks_for(("pay", {"n": 6})), 400),
    says("All is done."),
]


async def act(order):
    return f"{order.tool.name} {order.arguments['n']} is done"


def outside(said=SAID, **fields):
    executor = JournalingExecutor(dict.fromkeys((tool.name for tool in TOOLS), act))
    place = Outside.new(TurnModel(said), executor)
    return place, agent_spec(*TOOLS, context_window=100_000, **fields)


async def choose_and_answer(place, session=story.SESSION):
    """Have a person choose the other model before they answer the first question."""
    state = await place.state(session)
    if state.questions and state.agent.provider == "fake":
        await place.say(session, ModelChangeAsked(model=OTHER))
    return await story.answer(place, session)


drive = partial(story.drive, go_on=choose_and_answer)
