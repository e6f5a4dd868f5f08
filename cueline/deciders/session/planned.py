"""The state changes of a plan that goes on."""

from msgspec.structs import replace
from pydantic import JsonValue

from cueline.deciders.progress import StepResult, begun, call_added
from cueline.deciders.session.call import as_judged, with_call
from cueline.deciders.session.state import SessionState
from cueline.deciders.session.step_end import with_end
from cueline.deciders.session.turn import Call
from cueline.events.child import starts_child
from cueline.events.session import UNJUDGED, CallsAdded, MessageAwaited


def calls_added(state: SessionState, event: CallsAdded) -> SessionState:
    """Begin the steps, and end those that end without a call."""
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
            tool.declared if tool else "read_only",
            gated=False,
            digest="",
            delegates=starts_child(tool),
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
    """Wait for the message until the deadline."""
    call = state.call(event.effect)
    if call is None:
        return state
    return with_call(state, replace(call, phase="awaiting", attempt=1, retry_at=event.deadline_at))
