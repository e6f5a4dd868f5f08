"""What changes of an agent while its session runs: its model, and tools that a person accepts.

A chosen model is taken when no model call is in flight, and gets the next request.
Running tool calls go on.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from cueline.deciders.session.budget import account_of_unstarted
from cueline.deciders.session.fallback import break_prefix
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import CallProblem, ModelCall
from cueline.events.agent import AgentSpec, ModelChoice, ToolSpec, own_model, with_model
from cueline.events.inbox import ModelChangeAsked, ResumeAsked
from cueline.events.session import AgentChanged

_CHANGED = CallProblem("tool_changed")


def with_tools(agent: AgentSpec, tools: Collection[ToolSpec]) -> AgentSpec:
    """Return *agent* with *tools* in place of those with the same names."""
    new = {tool.name: tool for tool in tools}
    return agent.model_copy(update={"tools": tuple(new.get(t.name, t) for t in agent.tools)})


def with_changes(agent: AgentSpec, messages: Iterable[object]) -> AgentSpec:
    """Return *agent* after the session has read *messages*."""
    for said in messages:
        if isinstance(said, ResumeAsked):
            agent = with_tools(agent, said.tools)
        elif isinstance(said, ModelChangeAsked):
            agent = with_model(agent, said.model)
    return agent


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
    return replace(
        break_prefix(state, "tools_changed"), setup=setup, turn=state.turn.with_calls(calls)
    )


def choose_model(state: SessionState, chosen: ModelChoice) -> SessionState:
    """Remember the model that a person chose; choosing the present one takes that back."""
    same = chosen == own_model(state.agent)
    return replace(state, chosen=None if same else chosen)


def agent_change(state: SessionState) -> AgentChanged | None:
    """Return the event that takes the chosen model; None while a model call is in flight."""
    model = state.turn.model
    if state.chosen is None or (model is not None and _in_flight(state, model)):
        return None
    return AgentChanged(model=state.chosen)


def _in_flight(state: SessionState, model: ModelCall) -> bool:
    """Whether the call runs, or its budget is being reserved."""
    waits = model.room is not None or model.blocked_by_breaker is not None
    return model.phase == "started" or (model.phase == "requested" and state.limited and not waits)


def agent_changed(state: SessionState, event: AgentChanged) -> SessionState:
    """Use the changed agent; an open model call is requested again as another attempt."""
    setup = state.setup
    assert setup is not None, "a session that takes messages was started"
    if event.model is None:
        return state
    state = break_prefix(state, "model_switched")
    account, model = state.account, state.turn.model
    if model is not None and model.room is not None:
        account = account_of_unstarted(state)  # the ledger may grant it at any time
    if model is not None:
        model = replace(ModelCall(model.effect, model.attempt, "retry"), error=model.error)
    return replace(
        state,
        chosen=None,
        setup=replace(setup, agent=with_model(setup.agent, event.model)),
        turn=replace(state.turn, model=model, fallback=0),
        account=account,
    )
