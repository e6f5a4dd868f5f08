"""The events that follow from the state of a session with a plan: more calls, or the end."""

from cueline.deciders.plan import additions, end_of
from cueline.deciders.plan_progress import Progress
from cueline.deciders.session.judging import judge_added
from cueline.deciders.session.limit import limit_reached_or_warned
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.turn import Call
from cueline.events.fact import text_of
from cueline.events.session import (
    CallsAdded,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    ToolFailed,
    ToolReturned,
    ToolSkipped,
)

NOT_RUN = "Not run: a step failed without which the plan does not go on."


def plan_event(state: SessionState, progress: Progress) -> SessionEvent | None:
    """Return the next event of the plan; None while it waits for open calls."""
    plan = state.agent.plan
    assert plan is not None, "it makes progress with a plan"
    open_calls = state.open_calls
    running = [call for call in open_calls if not call.message]
    more = additions(progress, plan.max_parallel - len(running))
    if any(more):
        calls = {
            f"{state.turn.number}.{progress.added + index}": call
            for index, call in enumerate(more.calls)
        }
        added = CallsAdded(calls=calls, items=more.items, ended=tuple(more.ended))
        return limit_reached_or_warned(state, turns=False) or judge_added(state, added)
    if open_calls:
        return None
    end, used = end_of(plan, progress), state.used
    if end.error_code:
        return SessionFailed(kind=end.error_code, message=end.error)
    return SessionCompleted(
        result=end.text,
        value=end.value,
        is_null=end.is_null,
        partial=state.partial,
        turns=used.turns,
        tokens=used.tokens,
        usd=used.usd,
    )


def message_outcome(state: SessionState) -> SessionEvent | None:
    """Return the end of a step's wait for a message; None while the wait continues."""
    progress = state.progress
    if progress is None:
        return None
    for call in state.turn.awake:
        if call.phase == "awaiting" and (ended := _outcome(call, progress)) is not None:
            return ended
    return None


def _outcome(call: Call, progress: Progress) -> SessionEvent | None:
    if came := progress.messages.get(call.message):
        value = came[0]
        return ToolReturned(
            effect=call.effect,
            attempt=call.attempt,
            output=text_of(value),
            value=None if isinstance(value, str) else value,
            is_null=value is None,
        )
    if progress.failed:
        return ToolSkipped(effect=call.effect, reason=NOT_RUN)
    if call.retry_at is None:
        why = f"the message {call.message!r} did not come in time"
        return ToolFailed(
            effect=call.effect, attempt=call.attempt, kind="message_timeout", message=why
        )
    return None
