"""Tools that changed since they were recorded, once a person accepts them."""

from collections.abc import Collection

from msgspec.structs import replace

from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import CallProblem
from cueline.events.agent import AgentSpec, ToolSpec

_CHANGED = CallProblem("tool_changed")


def with_tools(agent: AgentSpec, tools: Collection[ToolSpec]) -> AgentSpec:
    """Return *agent* with *tools* in place of those with the same names."""
    new = {tool.name: tool for tool in tools}
    return agent.model_copy(update={"tools": tuple(new.get(t.name, t) for t in agent.tools)})


def accept_tools(state: SessionState, tools: Collection[ToolSpec]) -> SessionState:
    """Use *tools* from now on; requested calls of them that have not run are closed."""
    assert state.setup is not None, "a session that takes messages was started"
    agent = with_tools(state.agent, tools)
    by_name = {tool.name: tool for tool in agent.tools}
    setup = replace(state.setup, agent=agent, tools=by_name)
    changed = {tool.name for tool in tools}
    calls = tuple(
        replace(call, problem=call.problem or _CHANGED) if call.tool in changed else call
        for call in state.turn.calls
    )
    prompt_digests = replace(
        state.prompt_digests, requested=""
    )  # the next prompt begins with other tools
    return replace(
        state, setup=setup, turn=replace(state.turn, calls=calls), prompt_digests=prompt_digests
    )
