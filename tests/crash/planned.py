"""A session with a plan: parallel branches, a child, items, an approval, a retry and a wait."""

from cueline.errors import ToolFailedError
from cueline.events.agent_parts import Plan, RetryPolicy, Step
from cueline.events.inbox import MessageSent
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor, agent_spec, asks_for, says, tool_spec
from tests.crash import story
from tests.crash.delegation import TreeModel, agent_tool, named

SESSION = "session-default/story"
CHILD = f"{SESSION}.1.4"
NAMES = '`["a", "b", "c"]`'
STEPS = (
    Step(name="go", wait="go"),
    Step(name="look", for_each=NAMES, arguments={"n": "{{ item }}"}),
    Step(name="mend", arguments={"goal": "do"}),
    Step(name="pay", needs=("go",), arguments={"n": "{{ steps.go.value.n }}"}),
    Step(name="deploy", needs=("pay",), arguments={"all": "{{ steps.look.value }}"}),
    Step(name="spare", needs=("go",), arguments={"n": 1}),
    Step(name="after", needs=("spare",), condition="always"),
    Step(name="never", needs=("look",), when="steps.look.value[0].nothing"),
)
OUTPUT = "{look: steps.look.value[*].n, mend: steps.mend.text, deploy: steps.deploy.status}"
VALUE = {"look": ["a", "b", "c"], "mend": "Mended.", "deploy": "completed"}


async def act(order):
    if order.tool.name == "spare":
        raise ToolFailedError("tool_error", "it is broken")
    if order.tool.name == "look" and order.arguments.get("n") == "b" and order.attempt == 1:
        raise ToolFailedError("network", "away")
    return {"n": order.arguments.get("n"), "of": sorted(order.arguments)}


def outside(said=None):
    """Return an outside, and the agent with the plan."""
    tools = [
        tool_spec("look", "read_only").model_copy(
            update={"retry": RetryPolicy(max_retries=3, base_seconds=1.0, jitter=0)}
        ),
        agent_tool("mend"),
        tool_spec("pay"),
        tool_spec("deploy", sensitive=True),
        tool_spec("spare").model_copy(update={"critical": False}),
        tool_spec("after", "read_only"),
        tool_spec("never", "read_only"),
    ]
    child = {CHILD: [asks_for(("pay", {})), says("Mended.")]}
    executor = JournalingExecutor(dict.fromkeys((t.name for t in tools), act))
    place = Outside.new(TreeModel(child), executor)
    agents = {"mend": named("mend", tool_spec("pay"))}
    spec = agent_spec(
        *tools, agents=agents, plan=Plan(steps=STEPS, output=OUTPUT), provider="workflow"
    )
    return place, spec


async def go_on(place, session):
    """Answer what is asked, and send the message once the session waits for it."""
    streams = (SESSION, CHILD)
    asked = [await story.answer(place, each) for each in streams if await place.facts(each)]
    state = await place.state(SESSION)
    if state.waiting is not None and state.waiting.kind == "message":
        said = MessageSent(lane="note", text="go", name="go", value={"n": 7})
        await place.say(SESSION, said)
        return True
    return any(asked)


async def drive(place, life=None):
    return await story.drive(place, life, go_on=go_on)
