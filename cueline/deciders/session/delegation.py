"""The rules of a session's children: the calls that start a child, and their ends.

A call of a tool with an `agent:` target is *delegated*: no runner gets the call. The child's end
is one inbox message; the append that records the message closes the call.
"""

import json
from datetime import datetime

from msgspec.structs import replace

from cueline.deciders.child_text import capped
from cueline.deciders.session.failed_call import degrades
from cueline.deciders.session.permission import may_start
from cueline.deciders.session.state import OpenChild, SessionState
from cueline.deciders.session.turn import Call
from cueline.deciders.tool_search import found_tools
from cueline.events.agent import AGENT_SCHEME, FIND_TOOLS, AgentSpec, Limits, Policy
from cueline.events.agent_parts import VALUE_LIMIT, too_large
from cueline.events.budget import Allowance
from cueline.events.fact import text_of
from cueline.events.inbox import ChildEnded, StartAsked
from cueline.events.message import Arguments
from cueline.events.session import CallDelegated, ToolFailed, ToolReturned
from cueline.events.start import ChildCall, Run
from cueline.events.stream import shown


def delegated_outcome(state: SessionState) -> ToolReturned | ToolFailed | None:
    """Return the outcome of a delegated call whose child has ended, or that does not wait."""
    if state.ended:
        return _outcome(state, state.ended[0])
    if not state.turn.delegated:
        return None
    free = {each.effect: each for each in state.children if each.given_up or each.mode != "sync"}
    for call in state.turn.calls if free else ():
        if call.phase == "delegated" and call.effect in free:
            return _end_without_child(state, free[call.effect], call)
    return None


def poll_outcome(state: SessionState) -> ToolReturned | ToolFailed | None:
    """Return the outcome of a call that requests the end of a child; None without such a call."""
    for call in state.turn.awake:
        if call.polls is not None and may_start(state, call):
            return _poll(state, replace(call, attempt=call.attempt + 1), call.polls)
    return None


def _poll(state: SessionState, call: Call, session: str) -> ToolReturned | ToolFailed:
    if call.tool == FIND_TOOLS and state.setup is not None:
        found = found_tools(state.setup.tools.values(), session)
        return ToolReturned(effect=call.effect, attempt=call.attempt, output=found)
    for stream, end in state.results.items():
        if shown(stream) == session:
            return ToolReturned(effect=call.effect, attempt=call.attempt, output=end, child=stream)
    for child in state.children:
        asked = child.mode == "async_poll" or (call.stops and child.mode == "async_callback")
        if asked and shown(child.stream) == session:
            if child.gone:
                return _failed(state, call, "child_timeout", _timeout(child))
            going = "paused" if child.paused else "running"
            return _status(call, child, "stopping" if call.stops or child.stopping else going)
    why = f"{session!r} is no session that this one started in the mode async_poll"
    return _failed(state, call, "unknown_session", why)


def _end_without_child(
    state: SessionState, child: OpenChild, call: Call
) -> ToolReturned | ToolFailed:
    if child.given_up:
        return _failed(state, call, "child_timeout", _timeout(child))
    return _status(call, child, "started")


def _timeout(child: OpenChild) -> str:
    how = "; it goes on, and you get its end" if child.left else ", nor after it was stopped"
    return f"session {shown(child.stream)} did not end in time{how}"


def _status(call: Call, child: OpenChild, status: str) -> ToolReturned:
    said = json.dumps({"session": shown(child.stream), "status": status})
    return ToolReturned(effect=call.effect, attempt=call.attempt, output=said)


def _outcome(state: SessionState, ended: ChildEnded) -> ToolReturned | ToolFailed:
    call = state.call(ended.effect)
    assert call is not None, "the message of an open call is kept"
    if ended.error_code:
        return _failed(state, call, ended.error_code, capped(ended.error))
    text = ended.text if ended.value is None else text_of(ended.value)
    returned = ToolReturned(
        effect=call.effect, attempt=call.attempt, output=capped(text), child=ended.child
    )
    if state.progress is None:
        return returned
    if (size := len(text.encode(errors="replace"))) > VALUE_LIMIT:
        return _failed(state, call, "result_too_large", too_large("its result", size))
    whole = {"output": text, "value": ended.value, "is_null": ended.is_null}
    return returned.model_copy(update=whole)


def _failed(state: SessionState, call: Call, kind: str, message: str) -> ToolFailed:
    return ToolFailed(
        effect=call.effect,
        attempt=call.attempt,
        kind=kind,
        message=message,
        degraded=degrades(state, call, kind),
        child=call.child or "",
    )


def too_deep(limits: Limits) -> str:
    """Return the text for a session at the depth limit that tries to start a child."""
    return f"Maximum nesting depth ({limits.max_depth}) exceeded"


# The request that starts a child.


def child_request(
    state: SessionState,
    event: CallDelegated,
    arguments: Arguments,
    now: datetime,
    blueprint: AgentSpec | None = None,
) -> StartAsked:
    """Return the start request of a delegated call's child; with a *blueprint*, of a run."""
    setup = state.setup
    assert setup is not None, "a session that delegates was started"
    place, limits = setup.family, state.limit_state.limits
    child = child_agent(state.agent, blueprint or state.agent.agents[event.agent])
    given = arguments if blueprint is None else parameters_of_run(arguments)
    return StartAsked(
        agent=child,
        goal=str(arguments.get("goal", "")),
        attached=setup.attached,
        run=None if blueprint is None else Run(blueprint=event.agent),
        asked_by=setup.asked_by,
        traceparent=setup.traceparent,
        asked_at=now,
        parameters={} if child.parameters_schema is None else given,
        call=ChildCall(
            effect=event.effect, attempt=event.attempt, mode=event.mode, parameters=arguments
        ),
        parent=state.stream,
        root=place.root or state.stream,
        depth=place.depth + 1,
        allowances=allowances_below(state.stream, limits, place.allowances),
    )


def parameters_of_run(arguments: Arguments) -> Arguments:
    """Return the parameters with which a call starts a run of a blueprint."""
    given = arguments.get("parameters", {})
    return given if isinstance(given, dict) else {}


def allowances_below(
    stream: str, limits: Limits, above: tuple[Allowance, ...]
) -> tuple[Allowance, ...]:
    """Return the limits of a session and its ancestors that its children keep."""
    own = Allowance(session=stream, max_tokens=limits.max_tokens, max_cost=limits.max_cost)
    path = (own, *above)
    return tuple([a for a in path if a.max_tokens is not None or a.max_cost is not None])


def child_agent(parent: AgentSpec, child: AgentSpec) -> AgentSpec:
    """Return *child* with no more rights than its *parent* has.

    A call of the child needs each approval that the parent's rules demand. A child without a
    workspace gets the parent's workspace.
    """
    calls = any(tool.target.startswith(AGENT_SCHEME) for tool in child.tools)
    depth = min(parent.limits.max_depth, child.limits.max_depth)
    return child.model_copy(
        update={
            "policy": stricter(parent.policy, child.policy),
            "limits": child.limits.model_copy(update={"max_depth": depth}),
            "workspace": child.workspace or parent.workspace,
            "key_owner": parent.key_owner,
            # The agents of a blueprint are recorded with it.
            "agents": child.agents or (parent.agents if calls else {}),
        }
    )


def with_children(agent: AgentSpec) -> list[AgentSpec]:
    """Return *agent* and the agents that it starts, with the workspace and rules of the parent."""
    return [agent, *(child_agent(agent, each) for each in agent.agents.values())]


def stricter(parent: Policy, child: Policy) -> Policy:
    """Return a policy that asks if either policy asks, and grants only if both grant."""
    waits = (parent.auto_approve_after, child.auto_approve_after)
    after = None if None in waits else max(filter(None, waits))
    denials = [each for each in (parent.deny_from_usd, child.deny_from_usd) if each is not None]
    hooks = dict.fromkeys((*child.hooks, *parent.hooks))
    return child.model_copy(
        update={
            "approval": tuple(dict.fromkeys((*parent.approval, *child.approval))),
            "rules": tuple(dict.fromkeys((*parent.rules, *child.rules))),
            "notify_from_usd": min(parent.notify_from_usd, child.notify_from_usd),
            "ask_from_usd": min(parent.ask_from_usd, child.ask_from_usd),
            "deny_from_usd": min(denials, default=None),
            "in_doubt": "ask" if "ask" in (parent.in_doubt, child.in_doubt) else "tell",
            "auto_approve": parent.auto_approve and child.auto_approve,
            "auto_approve_after": after,
            "hooks": tuple(hooks),
        }
    )
