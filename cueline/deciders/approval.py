"""The rules of approvals: what is asked, and what an answer makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, assert_never

from cueline.deciders.decider import Decider
from cueline.events.agent import Policy, ToolSpec
from cueline.events.approval import (
    ApprovalDenied,
    ApprovalEvent,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.events.session import Verdict

AUTO_APPROVER = "auto:cli-flag"
"""Who grants where that was chosen at the start."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a call may run, and by which rule."""

    asks: bool
    rule: str


_OFF = Judgement(asks=False, rule="off")
_SENSITIVE = Judgement(asks=True, rule="sensitive")
_NOT_SENSITIVE = Judgement(asks=False, rule="not sensitive")


def judge(policy: Policy, tool: ToolSpec) -> Judgement:
    """Say whether a person has to allow a call of *tool*; by its declaration, never its name."""
    if policy.approval == "off":
        return _OFF
    return _SENSITIVE if tool.sensitive else _NOT_SENSITIVE


@dataclass(frozen=True, slots=True)
class Open:
    """Ask; with `granted_by` the answer is known at once."""

    opened: ApprovalOpened
    granted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Vote:
    """A person's decision, as the log recorded it."""

    verdict: Literal["grant", "deny"]
    digest: str
    by: str
    note: str
    message: str
    """The inbox message that brought it; handing it over twice is handing it over once."""
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Expire:
    """The deadline has passed, and every decision recorded before it was handed over."""

    at: datetime


@dataclass(frozen=True, slots=True)
class Supersede:
    """The need has ended."""

    reason: str


ApprovalCommand = Open | Vote | Expire | Supersede


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """One approval, folded."""

    opened: ApprovalOpened | None = None
    verdict: Verdict | None = None
    by: str = ""
    note: str = ""
    votes: tuple[str, ...] = ()
    """The messages whose votes counted."""

    @property
    def pending(self) -> bool:
        """Whether an answer is awaited."""
        return self.opened is not None and self.verdict is None


def refusal(state: ApprovalState, vote: Vote) -> str | None:
    """Say why *vote* does not count; None when it does."""
    if state.opened is None:
        return "there is no such approval"
    if vote.message in state.votes:
        return None
    if state.verdict is not None:
        return f"already {state.verdict}"
    if vote.digest != state.opened.digest:
        return "it was given for something else than what is asked now"
    if vote.recorded_at > state.opened.deadline_at:
        return "it came after the deadline"
    return None


def decide(command: ApprovalCommand, state: ApprovalState) -> Sequence[ApprovalEvent]:
    """Say what *command* makes happen; what cannot change anything is `[]`."""
    match command:
        case Open(opened=opened, granted_by=by):
            if state.opened is not None:
                return []
            return [opened, ApprovalGranted(by=by)] if by else [opened]
        case Vote():
            if refusal(state, command) is not None or not state.pending:
                return []
            # A vote whose verdict was cut off still brings it (I13).
            voted = _voted(command)
            return voted[1:] if command.message in state.votes else voted
        case Expire(at=at):
            due = state.opened is not None and at >= state.opened.deadline_at
            return [ApprovalExpired(at=at)] if state.pending and due else []
        case Supersede(reason=reason):
            return [ApprovalSuperseded(reason=reason)] if state.pending else []
        case _:
            assert_never(command)


def _voted(vote: Vote) -> Sequence[ApprovalEvent]:
    voted = VoteGiven(
        verdict=vote.verdict,
        by=vote.by,
        note=vote.note,
        message=vote.message,
        recorded_at=vote.recorded_at,
    )
    if vote.verdict == "grant":
        return [voted, ApprovalGranted(by=vote.by, note=vote.note)]
    return [voted, ApprovalDenied(by=vote.by, note=vote.note)]


def evolve(state: ApprovalState, event: ApprovalEvent) -> ApprovalState:
    """Say what *event* changed."""
    match event:
        case ApprovalOpened():
            return replace(state, opened=event)
        case VoteGiven(message=message):
            return replace(state, votes=(*state.votes, message))
        case ApprovalGranted(by=by, note=note):
            return replace(state, verdict="granted", by=by, note=note)
        case ApprovalDenied(by=by, note=note):
            return replace(state, verdict="denied", by=by, note=note)
        case ApprovalExpired():
            return replace(state, verdict="expired")
        case ApprovalSuperseded():
            return replace(state, verdict="superseded")
        case _:
            assert_never(event)


APPROVAL: Decider[ApprovalCommand, ApprovalState, ApprovalEvent] = Decider(
    ApprovalState(), decide, evolve
)
