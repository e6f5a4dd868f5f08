"""What the facts of an approval change."""

from cueline.deciders.decider import replace
from cueline.deciders.session.call import with_call
from cueline.deciders.session.state import Answer, Approval, Call, Ruling, SessionState
from cueline.events.session import ApprovalRequested, ApprovalResolved, GateAnswer

EXPIRED = "approval expired"
"""Why a session is held after nobody decided in time."""
_TIMED_OUT = "Action rejected: approval timeout"
_REJECTED = "Action rejected by human operator"


def approval_requested(state: SessionState, event: ApprovalRequested) -> SessionState:
    """Wait for a person."""
    call = state.call(event.effect)
    if call is None:
        return state
    approval = Approval(event.approval, event.digest, event.deadline_at, event.question)
    return with_call(state, replace(call, approval=approval, asked=call.asked + 1))


def answered(state: SessionState, gate: GateAnswer) -> SessionState:
    """Note the gate's verdict, until it is resolved in a fact of its own."""
    call = state.call_of_approval(gate.approval)
    if gate.verdict is None or call is None or call.approval is None or not call.asking:
        return state
    answer = Answer(gate.verdict, gate.by, gate.note)
    return with_call(state, replace(call, approval=replace(call.approval, answer=answer)))


def approval_resolved(state: SessionState, event: ApprovalResolved) -> SessionState:
    """Take the verdict; what it means depends on what was asked."""
    call = state.call_of_approval(event.approval)
    if call is None or call.approval is None:
        return state
    closed = replace(call, approval=None)
    if event.verdict == "granted" and call.approval.question == "may_it_run":
        if call.approval.digest != call.digest:
            return with_call(state, closed)  # I9: for something else, so it is asked again
        granted = replace(call.approval, granted=event.by, answer=None)
        return with_call(state, replace(call, approval=granted))
    if event.verdict == "expired":
        return _expired(state, closed, call.approval)
    if event.verdict == "superseded":
        return with_call(state, closed)
    if call.approval.question == "did_it_happen":
        ruling = Ruling(happened=event.verdict == "granted", by=event.by)
        return with_call(state, replace(closed, ruling=ruling))
    note = f": {event.note}" if event.note else ""
    return with_call(state, replace(closed, problem=f"{_REJECTED}{note}"))


def _expired(state: SessionState, call: Call, approval: Approval) -> SessionState:
    """Nobody decided: the call never runs, and a person says when the session goes on."""
    held = state if state.stop else replace(state, hold=state.hold or EXPIRED)
    if approval.question == "did_it_happen":
        return with_call(held, call)
    return with_call(held, replace(call, problem=_TIMED_OUT))
