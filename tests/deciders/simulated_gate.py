"""A gate for the simulated shell: the rules of an approval, and the facts they bring a session."""

from datetime import datetime, timedelta

from cueline.deciders.approval import (
    APPROVAL,
    ApprovalState,
    Expire,
    Open,
    Supersede,
    grant_note,
    valid_until,
    vote_of,
)
from cueline.deciders.session import SessionState
from cueline.deciders.session.due import AskApproval, CloseApproval
from cueline.deciders.session.judging import digest_of
from cueline.deciders.session.turn import Call
from cueline.events.approval import ApprovalOpened
from cueline.events.codes import Refusal
from cueline.events.inbox import DecisionGiven
from cueline.events.session import ApprovalRequested, ApprovalResolved, GateAnswer


class SimulatedGate:
    """The approvals of one session, which outlive its hosts."""

    def __init__(self) -> None:
        self._states: dict[str, ApprovalState] = {}

    def knows(self, approval: str) -> bool:
        """Whether it was asked here, and not in a log that this one goes on from."""
        return approval in self._states

    def vote(
        self,
        session: SessionState,
        given: DecisionGiven,
        message: str,
        *,
        recorded_at: datetime,
        now: datetime,
    ) -> GateAnswer:
        """Take a person's decision, which is read *now*, and say what became of it."""
        state = self._states.get(given.approval, ApprovalState())
        call = session.call_of_approval(given.approval)
        digest = ""
        if call is not None and given.edit is not None:
            digest = digest_of(session, call.effect, call.tool, given.edit)
        vote = vote_of(given, message, recorded_at, digest)
        events = APPROVAL.decide(vote, state)
        state = self._states[given.approval] = APPROVAL.replay(events, state)
        late = None
        if state.verdict == "granted" and state.opened and state.resolution != "happened":
            late = valid_until(state.opened.deadline_at, now)
        return GateAnswer(
            approval=given.approval,
            verdict=state.verdict if events else None,
            valid_until=late if events else None,
            by=state.by or given.by,
            edit=state.edit,
            digest=state.digest,
            always=state.always,
            told=grant_note("tool", vote) if events and state.verdict == "granted" else "",
            resolution=state.resolution,
            result=state.result,
            refusal=None if events else Refusal(code="too_late"),
        )

    def ask(
        self, session: SessionState, effect: AskApproval, epoch: int, now: datetime
    ) -> ApprovalRequested:
        """Open the question, and say so; `resolution` tells whether it is answered at once."""
        call = session.call(effect.effect)
        assert call is not None, "what is due is in the state"
        people_only = call.judged.people_only or call.escalated
        free = effect.question == "may_it_run" and not people_only
        auto = "auto:cli-flag" if session.agent.policy.auto_approve and free else None
        opened = _opened(session, effect, call, epoch, now, free=free)
        state = self._states.get(effect.approval, ApprovalState())
        events = APPROVAL.decide(Open(opened, auto), state)
        state = self._states[effect.approval] = APPROVAL.replay(events, state)
        assert state.opened is not None, "opening opens"
        return ApprovalRequested(
            effect=effect.effect,
            approval=effect.approval,
            digest=effect.digest,
            deadline_at=state.opened.deadline_at,
            question=effect.question,
            auto_at=state.opened.auto_at,
            people_only=people_only,
            escalated=call.escalated,
        )

    def close(self, effect: CloseApproval, now: datetime) -> ApprovalResolved | None:
        """End the question, and say how; None when there is nothing to say yet."""
        by = effect.superseded_by
        state = self._states.get(effect.approval, ApprovalState())
        if state.opened is None:
            return ApprovalResolved(
                approval=effect.approval,
                verdict="superseded" if by else "expired",
                by=by or "clock",
            )
        events = APPROVAL.decide(Supersede(by) if by else Expire(now), state)
        self._states[effect.approval] = APPROVAL.replay(events, state)
        return self.resolution(effect.approval)

    def resolution(self, approval: str) -> ApprovalResolved | None:
        """Return how the question was decided, if it was."""
        state = self._states[approval]
        if state.verdict is None:
            return None
        return ApprovalResolved(
            approval=approval,
            verdict=state.verdict,
            by="clock" if state.verdict == "expired" else state.by,
            edit=state.edit,
            digest=state.digest,
            always=state.always,
            resolution=state.resolution,
            result=state.result,
        )


def _opened(
    session: SessionState,
    effect: AskApproval,
    call: Call,
    epoch: int,
    now: datetime,
    *,
    free: bool,
) -> ApprovalOpened:
    policy = session.agent.policy
    after = policy.auto_approve_after if free else None
    return ApprovalOpened(
        session=session.stream,
        effect=effect.effect,
        digest=effect.digest,
        question=effect.question,
        tool="",
        arguments={},
        summary="",
        epoch=epoch,
        opened_at=now,
        deadline_at=now + timedelta(seconds=policy.approval_seconds),
        votes=call.judged.votes if effect.question == "may_it_run" else 1,
        auto_at=None if after is None else now + timedelta(seconds=after),
        auto_by="auto:auto_approve_after",
    )
