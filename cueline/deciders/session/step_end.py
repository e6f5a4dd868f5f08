"""The end of a plan's step, in the state of its session."""

from typing import Final

from msgspec.structs import replace

from cueline.deciders.progress import StepResult, call_over, message_taken, step_over
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call, CallProblem
from cueline.events.session import ToolFailed, ToolReconciled, ToolReturned, ToolSkipped

NOT_STARTED: Final = frozenset({"requested", "retry"})


def planned_call_over(
    state: SessionState, call: Call, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    """Give the outcome of a call to its step; the call leaves the list that rules walk."""
    if call.judged.answer != "notify" or not state.agent.policy.hooks:
        left = tuple([each for each in state.turn.calls if each.effect != call.effect])
        state = replace(state, turn=state.turn.with_calls(left))
    if call.message and isinstance(event, ToolReturned) and state.progress is not None:
        state = replace(state, progress=message_taken(state.progress, call.message))
    index = call.id[len(call.tool) + 1 : -1]
    return with_end(state, call.tool, int(index) if index else 0, _result_of(call, event))


def with_end(state: SessionState, name: str, index: int | None, result: StepResult) -> SessionState:
    """End a step, or its call of that index; without a critical step the plan has failed."""
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
    """Let nothing more begin; what runs goes on to its end."""
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
    """Return why a call did not run."""
    if call.problem is None:
        if call.phase == "awaiting":
            return "step_failed"
        return "circuit_open" if call.blocked_by_breaker is not None else "not_started"
    if call.problem.code == "judged":
        return "denied" if call.judged.answer == "deny" else "invalid_call"
    return call.problem.code
