"""What the facts of a tool call change."""

import hashlib
import json

from cueline.deciders import prompt
from cueline.deciders.approval import judge
from cueline.deciders.decider import replace
from cueline.deciders.retry import rests
from cueline.deciders.session.state import Call, Marks, SessionState
from cueline.events.message import ToolCall
from cueline.events.session import (
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)


def with_call(state: SessionState, changed: Call) -> SessionState:
    """Return *state* with the call of that effect as *changed*."""
    calls = tuple(changed if c.effect == changed.effect else c for c in state.turn.calls)
    return replace(state, turn=replace(state.turn, calls=calls))


def requested_call(state: SessionState, effect: str, call: ToolCall) -> Call:
    """Return what is remembered of a call that the model asks for."""
    tool = state.setup.tools.get(call.name) if state.setup else None
    problem = call.problem
    if tool is None:
        known = ", ".join(sorted(state.setup.tools)) if state.setup else ""
        problem = f"There is no tool {call.name!r}; the tools are: {known or 'none'}."
    elif problem is None and call.malformed is not None:
        problem = "The arguments were not a JSON object; nothing was run."
    return Call(
        effect=effect,
        id=call.id,
        tool=call.name,
        declared=tool.declared if tool else "nothing",
        gated=tool is not None and judge(state.agent.policy, tool).asks,
        digest=_digest(state, effect, call),
        problem=problem,
    )


def _digest(state: SessionState, effect: str, call: ToolCall) -> str:
    tool = state.setup.tools.get(call.name) if state.setup else None
    workspace = state.agent.workspace
    return order_digest(
        session=state.stream,
        effect=effect,
        tool=call.name,
        tool_digest=tool.digest if tool else "",
        arguments=call.arguments,
        workspace=(workspace.machine, workspace.path) if workspace else None,
    )


def order_digest(
    *,
    session: str,
    effect: str,
    tool: str,
    tool_digest: str,
    arguments: object,
    workspace: tuple[str, str] | None,
) -> str:
    """Return the digest of exactly what would run; the runner computes it again (I9)."""
    whole = [session, effect, tool, tool_digest, arguments, workspace]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def call_started(state: SessionState, event: ToolStarted) -> SessionState:
    """Give the call to a runner."""
    call = state.call(event.effect)
    if call is None:
        return state
    return with_call(
        state,
        replace(
            call,
            phase="started",
            attempt=event.attempt,
            runner=event.runner,
            retry_at=None,
            rests=False,
            reach=None,
        ),
    )


def told(state: SessionState, call: Call, text: str, *, failed: bool) -> Marks:
    """Return the marks with what the model will be told of a call that is over."""
    message = prompt.tool_message(call.id, text, failed=failed)
    results = (*state.marks.results, (call.effect, prompt.fingerprint(message)))
    return replace(state.marks, results=results)


def call_closed(
    state: SessionState, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    """Take the call's outcome."""
    result = prompt.result_of(event)
    call = state.call(event.effect)
    if result is None or call is None or call.phase == "closed":
        return state
    closed = replace(call, phase="closed", approval=None, retry_at=None, reach=None)
    calls = tuple(closed if c is call else c for c in state.turn.calls)
    return replace(
        state,
        turn=replace(state.turn, calls=calls),
        marks=told(state, call, result[0], failed=result[1]),
        takeovers=0 if isinstance(event, ToolReturned | ToolFailed) else state.takeovers,
    )


def call_failed(state: SessionState, event: ToolFailed) -> SessionState:
    """Note when it is tried again, or that it is over."""
    call = state.call(event.effect)
    if event.retry_at is None or call is None or call.phase == "closed":
        return call_closed(state, event)
    at_once = event.failed_at is None or event.retry_at <= event.failed_at
    again = replace(
        call,
        phase="requested" if at_once else "retry",
        failures=call.failures + 1,
        retry_at=None if at_once else event.retry_at,
        rests=rests(event.failed_at, event.retry_at),
        reach=None,
    )
    return with_call(state, again)


def call_in_doubt(state: SessionState, event: ToolInDoubt) -> SessionState:
    """Nobody knows whether it took effect; what allowed it is used up (I9)."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    doubt = replace(call, phase="in_doubt", approval=None, unclear=False, ruling=None, reach=None)
    return with_call(state, doubt)


def call_reconciled(state: SessionState, event: ToolReconciled) -> SessionState:
    """Take what was found out, or decided, of a call in doubt."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    if event.outcome == "did_not_happen":
        # A person who says so gives leave to run it again; a tool that says so
        # does not speak for the person whose grant was used up (I5).
        gated = call.gated and call.ruling is None
        again = replace(call, phase="requested", gated=gated, ruling=None, reach=None)
        return with_call(state, again)
    if prompt.result_of(event) is None:
        return with_call(state, replace(call, unclear=True, reach=None))
    return call_closed(state, event)
