"""The state changes of an approval's facts."""

import json

from msgspec.structs import replace

from cueline.deciders.session.call import as_judged, with_call
from cueline.deciders.session.children import with_stop
from cueline.deciders.session.state import SessionHold, SessionState, Stop
from cueline.deciders.session.turn import (
    ApprovalAnswer,
    Call,
    CallApproval,
    CallProblem,
    InDoubtResolution,
)
from cueline.deciders.standing_grant import StandingGrant
from cueline.events.codes import Cause
from cueline.events.session import (
    UNJUDGED,
    ApprovalRequested,
    ApprovalResolved,
    GateAnswer,
    PeopleNotified,
)


def approval_requested(state: SessionState, event: ApprovalRequested) -> SessionState:
    """Return *state* with an open approval."""
    call = state.call(event.effect)
    if call is None:
        return state
    approval = CallApproval(
        event.approval,
        event.digest,
        event.deadline_at,
        event.question,
        auto_at=event.auto_at,
        people_only=event.people_only,
        escalated=event.escalated,
        seen=event.seen,
    )
    return with_call(state, replace(call, approval=approval, asked=call.asked + 1))


def approval_answered(state: SessionState, gate: GateAnswer) -> SessionState:
    """Return *state* with the gate's verdict, which `ApprovalResolved` records later."""
    call = state.call_of_approval(gate.approval)
    if gate.verdict is None or call is None or call.approval is None or not call.asking:
        return state
    answer = ApprovalAnswer(
        gate.verdict,
        gate.by,
        gate.note,
        gate.edit,
        gate.digest,
        gate.always,
        gate.usd,
        gate.valid_until,
        gate.resolution,
        gate.result,
    )
    return with_call(state, replace(call, approval=replace(call.approval, answer=answer)))


def approval_resolved(state: SessionState, event: ApprovalResolved) -> SessionState:
    """Return *state* after a verdict, whose meaning depends on the question."""
    call = state.call_of_approval(event.approval)
    if call is None or call.approval is None:
        return state
    closed = replace(call, approval=None)
    if call.phase == "deferred" and call.input is not None:
        refusal = json.dumps({each.key: False for each in call.input.requests})
        answer = event.result if event.verdict == "granted" else refusal
        told = replace(call.input, answer=answer)  # the task goes on, and ends as it likes
        return with_call(state, replace(closed, retry_at=None, input=told))
    if event.verdict == "granted" and call.approval.question == "may_it_run":
        return _grant(state, call, call.approval, event)
    if event.verdict == "granted" and call.approval.question == "what_to_answer":
        return with_call(state, _answered(call, call.approval, event))
    if event.verdict == "expired":
        return _expire(state, closed, call.approval)
    if event.verdict == "superseded":
        return with_call(state, closed)
    if call.approval.question == "did_it_happen":
        return with_call(state, _apply_resolution(closed, call.approval, event))
    return _deny(state, closed, event)


def _answered(call: Call, asked: CallApproval, event: ApprovalResolved) -> Call:
    """Return *call* with a person's answer, which is a new grant: the call may go on (I9)."""
    given = None if call.input is None else replace(call.input, answer=event.result)
    grant = replace(
        asked,
        question="may_it_run",
        digest=call.digest,
        granted=event.by,
        answer=None,
        deadline_at=event.valid_until or asked.deadline_at,
    )
    return replace(call, phase="requested", gated=True, approval=grant, input=given)


def _apply_resolution(call: Call, asked: CallApproval, event: ApprovalResolved) -> Call:
    """Return *call* with a person's resolution of the doubt; `run_again` is a new grant (I5, I9).

    A call that needs named approvers or several votes needs another approval.
    """
    resolution = event.resolution or "do_not_run"
    ruled = replace(
        call, in_doubt_resolution=InDoubtResolution(resolution, event.by, event.note, event.result)
    )
    if resolution != "run_again":
        return ruled
    if call.judged.people_only:
        return replace(ruled, gated=True)
    grant = replace(
        asked,
        question="may_it_run",
        granted=event.by,
        answer=None,
        deadline_at=event.valid_until or asked.deadline_at,
    )
    return replace(ruled, gated=True, approval=grant)


def _grant(
    state: SessionState, call: Call, approval: CallApproval, event: ApprovalResolved
) -> SessionState:
    """Return *state* with the exact granted call allowed; any other call needs an approval (I9)."""
    allowed = call
    if event.edit is not None:
        polls = None if call.polls is None else str(event.edit.get("session", ""))
        stops = polls is not None and event.edit.get("stop") is True
        allowed = as_judged(replace(call, polls=polls, stops=stops), event.judged or UNJUDGED)
        if call.holds:  # another command runs first, and a person is asked what it would change
            return with_call(state, replace(allowed, approval=None, input=None))
        stricter = allowed.gated and call.judged.demand != allowed.judged.demand
        if allowed.problem is not None or stricter or event.digest != allowed.digest:
            return with_call(state, replace(allowed, approval=None))
        state = with_call(state, allowed)
        approval = replace(approval, seen="")  # the shown diff was of other arguments
    elif approval.digest != call.digest:
        return with_call(state, replace(call, approval=None))
    granted = replace(
        approval,
        granted=event.by,
        answer=None,
        digest=allowed.digest,
        auto_at=None,
        deadline_at=event.valid_until or approval.deadline_at,
    )
    return _keep_standing_grant(
        with_call(state, replace(allowed, gated=True, approval=granted)), call, event
    )


def _keep_standing_grant(state: SessionState, call: Call, event: ApprovalResolved) -> SessionState:
    """Return *state* with a grant for the rest of the session."""
    if event.always is None or state.setup is None:
        return state
    tool = state.setup.tools[call.tool]
    standing = StandingGrant(tool.digest, event.always, event.by, call.judged.demand)
    setup = replace(state.setup, standing=(*state.setup.standing, standing))
    return replace(state, setup=setup)


def _deny(state: SessionState, call: Call, event: ApprovalResolved) -> SessionState:
    """Return *state* with the call denied; the policy decides how the session continues."""
    told = with_call(state, replace(call, problem=CallProblem("rejected", event.note)))
    match state.agent.policy.on_deny:
        case "pause" if not state.stop:
            return replace(told, hold=state.hold or SessionHold(Cause(code="call_denied")))
        case "cancel" if not state.stop:
            return with_stop(told, Stop(event.by, "call_denied", event.note))
        case _:
            return told


def _expire(state: SessionState, call: Call, approval: CallApproval) -> SessionState:
    """Return *state* after an expiry: the call never runs; the policy decides the rest."""
    may_it_run = approval.question != "did_it_happen"
    after = with_call(state, replace(call, problem=CallProblem("expired")) if may_it_run else call)
    match state.agent.policy.on_expiry:
        case _ if state.stop:
            return after
        case "pause" if state.progress is not None and may_it_run:
            return after  # its step has failed: there is nothing to resume
        case "fail":
            return with_stop(after, Stop("policy", "approval_expired", approval=approval.id))
        case "escalate" if not approval.escalated:
            return with_call(state, replace(call, escalated=True))
        case "deny_and_continue" if may_it_run:
            return after
        case "deny_and_continue":
            return with_call(
                state, replace(call, in_doubt_resolution=InDoubtResolution("do_not_run", "policy"))
            )
        case _:
            return replace(
                after,
                hold=state.hold
                or SessionHold(Cause(code="approval_expired", approvals=(approval.id,))),
            )


def people_notified(state: SessionState, event: PeopleNotified) -> SessionState:
    """Return *state* with the hook that ran."""
    call = state.call(event.effect)
    if call is None:
        return state
    return with_call(state, replace(call, told=(*call.told, (event.approval, event.hook))))
