"""What the facts of a tool call change."""

import hashlib
from collections.abc import Mapping

from msgspec.structs import replace

from cueline.deciders import prompt
from cueline.deciders.policy import NOT_ESTIMATED, Judgement, judge
from cueline.deciders.retry import rests
from cueline.deciders.session.state import Hold, Marks, SessionState, Setup
from cueline.deciders.session.turn import Call
from cueline.events.agent import ToolSpec
from cueline.events.message import Arguments, Estimate, ToolCall, canonical_json
from cueline.events.session import (
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)

_LONGEST_EVIDENCE = 200
_ATTEMPTED = frozenset({"ToolReturned", "ToolFailed"})
"""What ends an attempt: an effect finished, so its host was not taken down by it."""


def with_call(state: SessionState, changed: Call) -> SessionState:
    """Return *state* with the call of that effect as *changed*."""
    calls = tuple([changed if c.effect == changed.effect else c for c in state.turn.calls])
    return replace(state, turn=replace(state.turn, calls=calls))


def requested_call(
    state: SessionState, effect: str, call: ToolCall, estimates: Mapping[str, Estimate]
) -> Call:
    """Return what is remembered of a call that the model asks for."""
    assert state.setup is not None, "only a session that was started asks a model"
    tool = state.setup.tools.get(call.name)
    declared = tool.declared if tool else "nothing"
    asked = Call(effect, call.id, call.name, declared, gated=False, digest="")
    if tool is None or call.malformed is not None or call.problem is not None:
        digest = digest_of(state, effect, call.name, call.arguments)
        return replace(asked, digest=digest, problem=_problem(state.setup, call))
    estimate = estimates.get(effect, NOT_ESTIMATED)
    return ordered(state, asked, tool, call.arguments, estimate)


def beyond(call: Call, most: int) -> Call:
    """Return *call* as one too many for its turn."""
    why = f"Not run: limits.max_tool_calls_per_turn is {most}; ask again for what is still needed."
    return replace(call, problem=call.problem or why)


def ordered(
    state: SessionState, call: Call, tool: ToolSpec, arguments: Arguments, estimate: Estimate
) -> Call:
    """Return *call* as what runs with *arguments*, and what the rules say of that."""
    assert state.setup is not None, "a call belongs to a session that was started"
    setup, agent = state.setup, state.setup.agent
    judged = judge(
        agent.policy,
        tool,
        arguments,
        estimate=estimate,
        workspace=agent.workspace,
        gate=setup.gates[tool.name],
        standing=setup.standing,
    )
    return replace(
        call,
        digest=digest_of(state, call.effect, tool.name, arguments),
        gated=judged.answer == "ask",
        judged=judged,
        problem=denied(judged) if judged.answer == "deny" else None,
    )


def denied(judged: Judgement) -> str:
    """Return what the model is told of a call that nobody can allow."""
    return f"This call is denied by a rule ({judged.rule}); nothing was run."


def digest_of(state: SessionState, effect: str, tool: str, arguments: Arguments) -> str:
    """Return the digest of exactly what would run in this session."""
    assert state.setup is not None, "a call belongs to a session that was started"
    spec = state.setup.tools.get(tool)
    workspace = state.setup.agent.workspace
    return order_digest(
        session=state.stream,
        effect=effect,
        tool=tool,
        tool_digest=spec.digest if spec else "",
        arguments=arguments,
        workspace=(workspace.machine, workspace.path) if workspace else None,
    )


def _problem(setup: Setup, call: ToolCall) -> str:
    if call.name not in setup.tools:
        known = ", ".join(sorted(setup.tools))
        return f"There is no tool {call.name!r}; the tools are: {known or 'none'}."
    return call.problem or "The arguments were not a JSON object; nothing was run."


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
    return hashlib.sha256(canonical_json(whole)).hexdigest()


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
            early=False,
        ),
    )


def told(state: SessionState, call: Call, text: str, *, failed: bool) -> Marks:
    """Return the marks with what the model will be told of a call that is over."""
    message = prompt.tool_message(call.id, text, failed=failed)
    marks = state.marks
    results = (*marks.results, (call.effect, prompt.fingerprint(message)))
    return Marks(marks.digest, marks.requested, results)


def call_closed(
    state: SessionState, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    """Take the call's outcome."""
    result = prompt.result_of(event)
    call = state.call(event.effect)
    if result is None or call is None or call.phase == "closed":
        return state
    closed = replace(call, phase="closed", approval=None, retry_at=None, reach=None)
    calls = tuple([closed if c is call else c for c in state.turn.calls])
    active = state.turn.active_seconds + getattr(event, "seconds", 0.0)
    return replace(
        state,
        turn=replace(state.turn, calls=calls, active_seconds=active),
        marks=told(state, call, result[0], failed=result[1]),
        partial=state.partial or (event.type != "ToolReturned" and event.degraded),
        takeovers=0 if event.type in _ATTEMPTED else state.takeovers,
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
        failing_since=call.failing_since or event.failed_at,
        retry_at=None if at_once else event.retry_at,
        rests=rests(event.failed_at, event.retry_at),
        reach=None,
    )
    if event.held:
        again = replace(again, failures=0, failing_since=None)
        why = f"error: {event.kind}: {event.message}"[:_LONGEST_EVIDENCE]
        state = replace(state, hold=state.hold or Hold(why))
    active = state.turn.active_seconds + event.seconds
    return with_call(replace(state, turn=replace(state.turn, active_seconds=active)), again)


def call_in_doubt(state: SessionState, event: ToolInDoubt) -> SessionState:
    """Nobody knows whether it took effect; what allowed it is used up (I9)."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    doubt = replace(
        call,
        phase="in_doubt",
        approval=None,
        evidence=event.evidence[:_LONGEST_EVIDENCE],
        unclear=False,
        ruling=None,
        reach=None,
    )
    return with_call(state, doubt)


def call_reconciled(state: SessionState, event: ToolReconciled) -> SessionState:
    """Take what was found out, or decided, of a call in doubt."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    if event.outcome in ("did_not_happen", "run_again"):
        # A person who has it run again has granted that; a tool that says that it did not
        # happen does not speak for the person whose grant was used up (I5).
        return with_call(state, replace(call, phase="requested", ruling=None, reach=None))
    if prompt.result_of(event) is None:
        return with_call(state, replace(call, unclear=True, reach=None))
    return call_closed(state, event)
