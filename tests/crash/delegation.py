"""A session that delegates to two agents at once, one of which delegates further."""

from cueline.events.agent import ToolSpec
from cueline.testing.crash import Outside
from cueline.testing.fakes import (
    JournalingExecutor,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)

SESSION = "session-default/story"
CHILDREN = (f"{SESSION}.1.0", f"{SESSION}.1.1")
GRANDCHILD = f"{SESSION}.1.1.1.0"
GOAL = {
    "type": "object",
    "properties": {"goal": {"type": "string"}},
    "required": ["goal"],
}


def agent_tool(name, **fields):
    """Return the tool that starts a child of the agent *name*."""
    return ToolSpec(
        name=name,
        description=f"The agent {name}.",
        parameters=GOAL,
        target=f"agent:{name}",
        timeout_seconds=600.0,
        digest=f"digest of {name}",
    ).model_copy(update=fields)


def named(name, *tools, **fields):
    return agent_spec(*tools, **fields).model_copy(update={"name": name})


class TreeModel(TurnModel):
    """Answers each session of a tree by its own list of replies."""

    def __init__(self, replies):
        super().__init__(())
        self.by_session = replies

    async def reply(self, request, deltas=lambda _: None):
        self._replies = self.by_session[request.session]
        return await super().reply(request, deltas)


REPLIES = {
    SESSION: [
        asks_for(("look", {"goal": "see"}), ("mend", {"goal": "do"}), ("read", {})),
        says("All is done."),
    ],
    CHILDREN[0]: [asks_for(("read", {})), says("I saw it.")],
    CHILDREN[1]: [asks_for(("look", {"goal": "see more"})), asks_for(("pay", {})), says("Mended.")],
    GRANDCHILD: [says("I saw more.")],
}


async def act(order):
    return f"{order.tool.name} is done"


def outside(replies=None, **limits):
    """Return an outside, and the agent that delegates."""
    read, pay = tool_spec("read", "read_only"), tool_spec("pay")
    executor = JournalingExecutor({"read": act, "pay": act})
    place = Outside.new(TreeModel(REPLIES if replies is None else replies), executor)
    agents = {
        "look": named("look", read),
        "mend": named("mend", agent_tool("look"), pay),
    }
    agent = agent_spec(agent_tool("look"), agent_tool("mend"), read, agents=agents)
    limited = agent.limits.model_copy(update=limits)
    return place, agent.model_copy(update={"limits": limited})
