"""The state changes of a tool call's facts, and of plan steps that begin or end with a call."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from pydantic import JsonValue

from cueline.deciders import prompt
from cueline.deciders.plan_progress import (
    StepResult,
    begun,
    call_added,
    call_over,
    message_taken,
    step_over,
)
from cueline.deciders.retry import rests
from cueline.deciders.session.sandbox import without_sandbox
from cueline.deciders.session.state import PromptDigests, SessionHold, SessionState
from cueline.deciders.session.turn import AskedInput, Call, CallProblem, Phase, ServerTask
from cueline.events.agent import FIND_TOOLS, SEARCH_SCHEME
from cueline.events.codes import Cause
from cueline.events.message import ImageBlock, ToolCall
from cueline.events.session import (
    UNJUDGED,
    CallsAdded,
    Judgement,
    MessageAwaited,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.start import asks_child, starts_child
from cueline.events.stream import shown

NOT_STARTED: Final = frozenset({"requested", "asked", "retry"})


def planned_call_over(
    state: SessionState, call: Call, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    """Return *state* with the outcome of a call in its step, and without the call."""
    if call.judged.answer != "notify" or not state.agent.policy.hooks:
        left = tuple([each for each in state.turn.calls if each.effect != call.effect])
        state = replace(state, turn=state.turn.with_calls(left))
    if call.message and isinstance(event, ToolReturned) and state.progress is not None:
        state = replace(state, progress=message_taken(state.progress, call.message))
    index = call.id[len(call.tool) + 1 : -1]
    return with_end(state, call.tool, int(index) if index else 0, _result_of(call, event))


def with_end(state: SessionState, name: str, index: int | None, result: StepResult) -> SessionState:
    """Return *state* after the end of a step or item; a critical failure fails the plan."""
    progress = state.progress
    assert progress is not None, "a step belongs to a plan"
    assert state.setup is not None, "a session with a plan was started"
    tool = state.setup.tools.get(name)
    if result.status == "failed" and state.stop is None:
        if progress.steps[name].critical if tool is None else tool.critical:
            over = progress if name in progress.over else step_over(progress, name, result)
            failed = replace(over, failed=progress.failed or name)
            return _given_up(replace(state, progress=failed))
        state = replace(state, partial=True)
    if index is None:
        return replace(state, progress=step_over(progress, name, result))
    return replace(state, progress=call_over(progress, name, index, result))


def _given_up(state: SessionState) -> SessionState:
    """Return *state* with all further steps skipped; running calls continue."""
    calls = [
        replace(call, problem=call.problem or CallProblem("step_failed"))
        if call.phase in NOT_STARTED
        else call
        for call in state.turn.calls
    ]
    return replace(state, turn=state.turn.with_calls(tuple(calls)))


def _result_of(
    call: Call, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> StepResult:
    match event:
        case ToolReturned() | ToolReconciled(outcome="happened"):
            text_only = event.value is None and not event.is_null
            return StepResult("completed", event.output if text_only else event.value, event.output)
        case ToolFailed():
            return StepResult("failed", None, "", event.message, event.kind)
        case ToolReconciled():
            return StepResult("failed", None, "", event.output, "outcome_unknown")
        case ToolSkipped():
            code = _code_of(call)
            if code == "step_failed":
                return StepResult("skipped", error_code=code)
            return StepResult("failed", None, "", event.reason, code)


def _code_of(call: Call) -> str:
    """Return the code of the reason why a call did not run."""
    if call.problem is None:
        if call.phase == "awaiting":
            return "step_failed"
        return "circuit_open" if call.blocked_by_breaker is not None else "not_started"
    if call.problem.code == "judged":
        return "denied" if call.judged.answer == "deny" else "invalid_call"
    return call.problem.code


_LONGEST_EVIDENCE = 200
_YES: Final = "yes"
_ATTEMPTED = frozenset({"ToolReturned", "ToolFailed"})
"""The facts that end an attempt, which prove that its host did not die of the effect."""


def with_call(state: SessionState, changed: Call) -> SessionState:
    """Return *state* with *changed* instead of the call with the same effect."""
    return replace(state, turn=state.turn.with_call(changed))


def requested_call(state: SessionState, effect: str, call: ToolCall, judged: Judgement) -> Call:
    """Return the call that the model or plan requests, before it runs."""
    assert state.setup is not None, "only a session that was started asks a model"
    tool = state.setup.tools.get(call.name)
    asked = Call(
        effect,
        call.id,
        call.name,
        tool.repeatability if tool else "nothing",
        gated=False,
        digest="",
        delegates=starts_child(tool),
        polls=str(call.arguments.get("session", "")) if asks_child(tool) else None,
        stops=asks_child(tool) and call.arguments.get("stop") is True,
        holds=tool is not None and tool.changes == "held",
    )
    if call.name == FIND_TOOLS and tool is not None and tool.target.startswith(SEARCH_SCHEME):
        asked = replace(asked, polls=str(call.arguments.get("query", "")))
    return as_judged(asked, judged)


def as_judged(call: Call, judged: Judgement) -> Call:
    """Return *call* with the judgement *judged*."""
    return replace(
        call,
        digest=judged.digest,
        gated=judged.answer == "ask",
        judged=judged,
        problem=CallProblem("judged", judged.problem) if judged.problem else None,
    )


def call_started(state: SessionState, event: ToolStarted) -> SessionState:
    """Return *state* with the call running on a runner."""
    call = state.call(event.effect)
    if call is None:
        return state
    if call.declared != "read_only" and not state.side_effects:
        state = replace(state, side_effects=True)
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


def with_result_digest(
    state: SessionState,
    call: Call,
    text: str,
    *,
    failed: bool,
    images: Sequence[ImageBlock] = (),
) -> PromptDigests:
    """Return the prompt digests with the result of a finished call."""
    message = prompt.tool_message(call.id, text, failed=failed, images=images)
    prompt_digests = state.prompt_digests
    results = (*prompt_digests.results, (call.effect, prompt.fingerprint(message)))
    return replace(prompt_digests, results=results)


def call_closed(
    state: SessionState, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    """Return *state* with the outcome of a call."""
    result = prompt.result_of(event)
    call = state.call(event.effect)
    if result is None or call is None or call.phase == "closed":
        return state
    closed = replace(call, phase="closed", approval=None, retry_at=None, reach=None)
    turn = state.turn.with_call(closed)
    active = state.turn.active_seconds + getattr(event, "seconds", 0.0)
    if call.phase == "delegated":
        state = _without_child(state, call)
    if call.stops and event.type == "ToolReturned":
        state = _with_child_stopped(state, call.polls)
    state = replace(
        state,
        turn=replace(turn, active_seconds=active),
        partial=state.partial or (event.type != "ToolReturned" and event.degraded),
        takeovers=0 if event.type in _ATTEMPTED else state.takeovers,
    )
    if state.progress is not None:
        return planned_call_over(state, call, event)
    text, failed = result
    images = prompt.images_of(event)
    digests = with_result_digest(state, call, text, failed=failed, images=images)
    return replace(state, prompt_digests=digests)


def _with_child_stopped(state: SessionState, session: str | None) -> SessionState:
    children = [
        replace(c, stopping=c.stopping or shown(c.stream) == session) for c in state.children
    ]
    return replace(state, children=tuple(children))


def _without_child(state: SessionState, call: Call) -> SessionState:
    """Return *state* without the message or child of a delegated call that has ended."""
    ended = tuple([each for each in state.ended if each.effect != call.effect])
    children = tuple([c for c in state.children if not (c.gone and c.effect == call.effect)])
    return replace(state, ended=ended, children=children)


def call_failed(state: SessionState, event: ToolFailed) -> SessionState:
    """Return *state* with the time of the call's retry, or with the call over."""
    state = without_sandbox(state)  # the call may have failed because it is gone
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
        said = event.message[:_LONGEST_EVIDENCE]
        cause = Cause(code="tool_failed", failure=event.kind, message=said)
        state = replace(state, hold=state.hold or SessionHold(cause))
    active = state.turn.active_seconds + event.seconds
    return with_call(replace(state, turn=replace(state.turn, active_seconds=active)), again)


def call_asked(state: SessionState, event: ToolAsked) -> SessionState:
    """Return *state* with the call in wait for a person's answer, and its grant used up (I9)."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    asked = AskedInput(event.requests, event.digest, event.state)
    active = state.turn.active_seconds + event.seconds
    state = replace(state, turn=replace(state.turn, active_seconds=active), takeovers=0)
    if call.phase == "deferred":  # its task waits for the answer
        return with_call(state, replace(call, attempt=call.attempt + 1, input=asked))
    phase: Phase = "requested" if call.holds else "asked"
    changed = replace(call, phase=phase, approval=None, input=asked, reach=None)
    if call.holds:  # the gate's question is the one about the changes, and its grant is the answer
        changed = replace(changed, input=replace(asked, answer=_YES))
        changed = as_judged(changed, event.judged or call.judged)
    return with_call(state, changed)


def call_deferred(state: SessionState, event: ToolDeferred) -> SessionState:
    """Return *state* with the call as a task of its server, and its grant used up (I9)."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    deferred = replace(
        call,
        phase="deferred",
        attempt=event.attempt + 1,
        retry_at=event.poll_at,
        approval=None,
        input=call.input if call.phase == "deferred" else None,
        task=ServerTask(event.state, event.at, event.deadline_at),
        reach=None,
    )
    active = state.turn.active_seconds + event.seconds
    state = replace(state, turn=replace(state.turn, active_seconds=active), takeovers=0)
    return with_call(state, deferred)


def call_in_doubt(state: SessionState, event: ToolInDoubt) -> SessionState:
    """Return *state* with the call in doubt, and its grant used up (I9)."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    said = event.cause.message[:_LONGEST_EVIDENCE]
    doubt = replace(
        call,
        phase="in_doubt",
        retry_at=None,
        approval=None,
        doubt=event.cause.model_copy(update={"message": said}),
        unclear=False,
        in_doubt_resolution=None,
        reach=None,
    )
    return with_call(state, doubt)


def call_reconciled(state: SessionState, event: ToolReconciled) -> SessionState:
    """Return *state* with the resolution of a call in doubt."""
    call = state.call(event.effect)
    if call is None or call.phase == "closed":
        return state
    if event.outcome in ("did_not_happen", "run_again"):
        # A person's decision to run the call again is a grant. A tool's "it did not happen" is
        # none: the former grant was used up (I5).
        return with_call(
            state, replace(call, phase="requested", in_doubt_resolution=None, reach=None)
        )
    if prompt.result_of(event) is None:
        return with_call(state, replace(call, unclear=True, reach=None))
    return call_closed(state, event)


def calls_added(state: SessionState, event: CallsAdded) -> SessionState:
    """Return *state* with the steps that begin, and with the steps that end without a call."""
    progress, calls = state.progress, list(state.turn.calls)
    assert progress is not None, "only a plan adds calls"
    assert state.setup is not None, "a session with a plan was started"
    for effect, call in event.calls.items():
        name, tool = call.name, state.setup.tools.get(call.name)
        if name not in progress.open:
            progress = begun(progress, name, event.items.get(name))
        progress = call_added(progress, name)
        added = Call(
            effect,
            call.id,
            name,
            tool.repeatability if tool else "read_only",
            gated=False,
            digest="",
            delegates=starts_child(tool),
            holds=tool is not None and tool.changes == "held",
            message=progress.steps[name].wait,
        )
        calls.append(as_judged(added, event.judged.get(effect, UNJUDGED)))
    state = replace(state, progress=progress, turn=state.turn.with_calls(tuple(calls)))
    for ended in event.ended:
        value: JsonValue = [] if ended.status == "completed" else None
        result = StepResult(ended.status, value, "", ended.error, ended.error_code)
        state = with_end(state, ended.step, None, result)
    return state


def message_awaited(state: SessionState, event: MessageAwaited) -> SessionState:
    """Return *state* with a step that waits for a message until the deadline."""
    call = state.call(event.effect)
    if call is None:
        return state
    return with_call(state, replace(call, phase="awaiting", attempt=1, retry_at=event.deadline_at))
