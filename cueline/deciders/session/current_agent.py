"""The session's current agent, after changes by messages and fallbacks.

After a permanent failure of a model, the next of the agent's `fallback` is called
from then on. A user's message or a resume returns to the agent's own model. A
request that is invalid or too long for one model may fit the next. A request
refused for its content is sent to no other model.

A chosen model is taken when no model call is in flight, and gets the next request.
Running tool calls continue.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from cueline.deciders.session.budget import account_of_unstarted
from cueline.deciders.session.state import PrefixBreak, SessionState
from cueline.deciders.session.turn import CallProblem, ModelCall
from cueline.events.agent import AgentSpec, ModelChoice, ToolSpec, answering, own_model, with_model
from cueline.events.codes import Cause
from cueline.events.inbox import ModelChangeAsked, ResumeAsked
from cueline.events.session import AgentChanged, PrefixReason, PromptPrefixChanged


def next_fallback(state: SessionState, given_up: ModelCall) -> int | None:
    """Return the fallback after the given-up model; None after the last."""
    following = given_up.fallback + 1
    return following if following <= len(state.agent.fallback) else None


def model_to_ask(state: SessionState, model: ModelCall) -> int | None:
    """Return the fallback number of the model to call now; None if no model has to be called."""
    if model.phase == "given_up":
        return next_fallback(state, model)
    if model.blocked_by_breaker is not None:
        return next_fallback(state, model) if state.agent.breaker.on_open == "fallback" else None
    return model.fallback if model.phase == "retry" and model.retry_at is None else None


def next_turns(state: SessionState, *, told: bool) -> int:
    """Return the model for a new turn: after a user's message, the agent's own model."""
    return 0 if told else state.turn.fallback


def break_prefix(state: SessionState, reason: PrefixReason) -> SessionState:
    """Return *state* before a change after which prompts begin differently.

    Of several changes before one request, the first is recorded.
    """
    digests = state.prompt_digests
    if not digests.requested or digests.broken is not None:
        return state
    broken = PrefixBreak(_name(state, state.turn.fallback), reason)
    return replace(state, prompt_digests=replace(digests, broken=broken))


def prefix_change(state: SessionState, fallback: int) -> PromptPrefixChanged | None:
    """Return `PromptPrefixChanged` if the next request does not begin like the last one.

    Return None if the event is already recorded, or the beginning is the same.
    """
    digests, last = state.prompt_digests, state.turn.fallback
    if not digests.requested or (digests.broken is None and fallback == last):
        return None
    broken = digests.broken or PrefixBreak(
        _name(state, last), "fallback_returned" if fallback < last else "fallback"
    )
    return PromptPrefixChanged(
        reason=broken.reason,
        before=broken.before,
        after=_name(state, fallback),
        cause=_cause(state),
    )


def _name(state: SessionState, fallback: int) -> str:
    agent = answering(state.agent, fallback)
    return f"{agent.provider} {agent.model}"


def _cause(state: SessionState) -> Cause | None:
    model = state.turn.model
    if model is not None and model.blocked_by_breaker is not None:
        return model.blocked_by_breaker.cause
    given_up = model is not None and model.phase == "given_up" and model.error
    return given_up.cause if given_up else None


_CHANGED = CallProblem("tool_changed")


def with_tools(agent: AgentSpec, tools: Collection[ToolSpec]) -> AgentSpec:
    """Return *agent* with *tools* instead of its tools with the same names."""
    new = {tool.name: tool for tool in tools}
    return agent.model_copy(update={"tools": tuple(new.get(t.name, t) for t in agent.tools)})


def with_changes(agent: AgentSpec, messages: Iterable[object]) -> AgentSpec:
    """Return *agent* with the model and tools that *messages* request."""
    for said in messages:
        if isinstance(said, ResumeAsked):
            agent = with_tools(agent, said.tools)
        elif isinstance(said, ModelChangeAsked):
            agent = with_model(agent, said.model)
    return agent


def accept_tools(state: SessionState, tools: Collection[ToolSpec]) -> SessionState:
    """Return *state* with *tools*; requested calls of these tools that have not run are closed."""
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
    """Return *state* with the model that a person chose; the current model cancels a choice."""
    same = chosen == own_model(state.agent)
    return replace(state, chosen=None if same else chosen)


def agent_change(state: SessionState) -> AgentChanged | None:
    """Return the event that changes to the chosen model; None while a model call is in flight."""
    model = state.turn.model
    if state.chosen is None or (model is not None and _in_flight(state, model)):
        return None
    return AgentChanged(model=state.chosen)


def _in_flight(state: SessionState, model: ModelCall) -> bool:
    """Whether the model call runs, or its budget is being reserved."""
    waits = model.room is not None or model.blocked_by_breaker is not None
    return model.phase == "started" or (model.phase == "requested" and state.limited and not waits)


def agent_changed(state: SessionState, event: AgentChanged) -> SessionState:
    """Return *state* with the changed agent; an open model call gets another attempt."""
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
