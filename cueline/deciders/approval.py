"""The rules of one approval: votes, verdict and expiry."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.decider import Decider
from cueline.deciders.pattern import matches_any
from cueline.events.agent import AgentSpec
from cueline.events.approval import (
    ApprovalDenied,
    ApprovalEvent,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    SupersedeCode,
    VoteGiven,
)
from cueline.events.codes import Refusal
from cueline.events.fact import shared_fields
from cueline.events.inbox import DecisionGiven, Resolution
from cueline.events.message import Arguments, canonical_json
from cueline.events.session import Verdict

AUTO_APPROVER = "auto:cli-flag"
"""The actor of automatic grants that a flag of the start allowed."""
AUTO_IN_TIME = "auto:auto_approve_after"
"""The actor of automatic grants after the time `auto_approve_after`."""
READ_LATE_SECONDS = 300.0
"""The seconds for which a grant that was read after its deadline stays valid, from the reading on.

The time suffices for earlier calls, and is at most the wait of a question at a terminal.
"""
_NOT_PEOPLE = ("auto:", "agent:", "session:")
"""The prefixes of the names of actors that are not people."""


def auto_approver(agent: AgentSpec) -> str:
    """Return the actor of grants by `auto_approve`: the source of this setting of *agent*."""
    source = agent.limit_sources.get("policy.auto_approve")
    if source is None:
        return f"auto:agent {agent.name}"
    if source.startswith("flag "):
        return AUTO_APPROVER
    return f"auto:{source}" if source.startswith("environment ") else f"auto:settings {source}"


class Open(Struct, frozen=True):
    """The command to open an approval, and to grant it in the name of `granted_by`."""

    opened: ApprovalOpened
    granted_by: str | None = None


class Vote(Struct, frozen=True):
    """A person's decision, as recorded in the log."""

    verdict: Literal["grant", "deny"]
    digest: str
    by: str
    note: str
    message: str
    """The inbox message of the decision; a repeated vote with the same message counts once."""
    recorded_at: datetime
    edit: Arguments | None = None
    """The edited arguments."""
    edit_digest: str = ""
    """The digest of the edited call."""
    always: tuple[str, ...] | None = None
    """The scope of a grant for the rest of the session."""
    resolution: Resolution | None = None
    """The resolution of a call in doubt."""
    result: str = ""


def vote_of(
    given: DecisionGiven, message: str, recorded_at: datetime, edit_digest: str = ""
) -> Vote:
    """Return the vote for the decision *given*, which came in the inbox *message*."""
    return Vote(
        given.verdict,
        given.digest,
        given.by,
        given.note,
        message,
        recorded_at,
        edit=given.edit,
        edit_digest=edit_digest,
        always=given.always,
        resolution=given.resolution,
        result=given.result,
    )


class Expire(Struct, frozen=True):
    """The command to apply a passed deadline; the gate has read every earlier decision."""

    at: datetime


class Supersede(Struct, frozen=True):
    """The command to close an approval that is no longer needed."""

    reason: SupersedeCode


ApprovalCommand = Open | Vote | Expire | Supersede


class ApprovalState(Struct, frozen=True):
    """The folded state of one approval."""

    opened: ApprovalOpened | None = None
    verdict: Verdict | None = None
    by: str = ""
    note: str = ""
    votes: tuple[str, ...] = ()
    """The inbox messages whose votes counted."""
    grantors: tuple[str, ...] = ()
    """The people who have voted yes."""
    edit: Arguments | None = None
    """The edited arguments with which the call runs; None: they were not edited."""
    digest: str = ""
    """The digest of the edited call."""
    always: tuple[str, ...] | None = None
    resolution: Resolution | None = None
    """The resolution of a call in doubt."""
    result: str = ""

    @property
    def pending(self) -> bool:
        """Whether the approval is open without a verdict."""
        return self.opened is not None and self.verdict is None


def refusal(state: ApprovalState, vote: Vote) -> Refusal | None:
    """Return why *vote* does not count; None if it counts."""
    if state.opened is None:
        return Refusal(code="no_such_approval")
    if vote.message in state.votes:
        return None
    if state.verdict is not None:
        return Refusal(code="already_decided", status=state.verdict)
    if vote.digest != state.opened.digest:
        return Refusal(code="other_digest")
    if vote.recorded_at > state.opened.deadline_at:
        return Refusal(code="too_late")
    if (reason := _misfit(state.opened, vote)) is not None:
        return reason
    return _objection(state, state.opened, vote) if vote.verdict == "grant" else None


def _misfit(opened: ApprovalOpened, vote: Vote) -> Refusal | None:
    """Return why *vote* does not answer the question of the approval; None if it does."""
    if opened.question == "may_it_run":
        fits = vote.resolution is None and not vote.result
        return None if fits else Refusal(code="not_in_doubt")
    if opened.question == "what_to_answer":
        fits = vote.resolution is None and bool(vote.result) == (vote.verdict == "grant")
        return None if fits else Refusal(code="not_answered")
    if vote.resolution is None or (vote.resolution == "do_not_run") != (vote.verdict == "deny"):
        return Refusal(code="not_resolved")
    given = vote.result and vote.resolution != "happened"
    return Refusal(code="no_result") if given else None


def _objection(state: ApprovalState, opened: ApprovalOpened, vote: Vote) -> Refusal | None:
    if (reason := may_not(opened, vote.by)) is not None:
        return reason
    if vote.by in state.grantors:
        return Refusal(code="granted_before", by=vote.by, votes=opened.votes)
    if vote.edit is None and vote.always is None:
        return None
    if opened.question != "may_it_run":
        return Refusal(code="nothing_to_change")
    if opened.votes > 1:
        return Refusal(code="needs_others", votes=opened.votes)
    return None


def is_person(name: str) -> bool:
    """Whether *name* can be the name of a person, who can grant."""
    return name != "" and not name.startswith(_NOT_PEOPLE)


def may_not(opened: ApprovalOpened, person: str) -> Refusal | None:
    """Return why *person* may not grant the call; None if the person may (C17)."""
    if not is_person(person):
        return Refusal(code="no_person", by=person)
    if person in opened.excluded:
        return Refusal(code="excluded", by=person)
    for group in opened.may_grant:
        if not matches_any(person, group):
            return Refusal(code="not_allowed", by=person, may_grant=group)
    return None


def valid_until(deadline_at: datetime, read_at: datetime) -> datetime | None:
    """Return the expiry of a grant that came in time but was read late; None for *deadline_at*.

    A grant is read late if no process ran that could read it earlier (I14).
    """
    late = read_at > deadline_at
    return read_at + timedelta(seconds=READ_LATE_SECONDS) if late else None


def grant_note(tool: str, vote: Vote) -> str:
    """Return the note about a grant for the model; empty for a plain grant."""
    if vote.edit is None and not vote.note:
        return ""
    changed = ""
    if vote.edit is not None:
        changed = f" with other arguments: {canonical_json(vote.edit).decode()}"
    note = f" ({vote.note})" if vote.note else ""
    return f"{vote.by} allowed the call of {tool}{changed}{note}"


def decide(command: ApprovalCommand, state: ApprovalState) -> Sequence[ApprovalEvent]:
    """Return the events of *command*; `[]` if it changes nothing."""
    match command:
        case Open(opened=opened, granted_by=by):
            if state.opened is not None:
                return []
            return [opened, ApprovalGranted(by=by)] if by else [opened]
        case Vote():
            if refusal(state, command) is not None or not state.pending:
                return []
            # A repeated vote still adds its verdict if a crash cut that off (I13).
            counted = command.message in state.votes
            return [
                *([] if counted else [VoteGiven(**shared_fields(command, VoteGiven))]),
                *_verdict(command, state),
            ]
        case Expire(at=at):
            return _timed(state, at)
        case Supersede(reason=reason):
            return [ApprovalSuperseded(reason=reason)] if state.pending else []
        case _:
            assert_never(command)


def _verdict(vote: Vote, state: ApprovalState) -> Sequence[ApprovalEvent]:
    """Return the verdict after a vote: one "no" denies; "yes" may need several people."""
    if vote.verdict == "deny":
        return [ApprovalDenied(by=vote.by, note=vote.note, resolution=vote.resolution)]
    assert state.opened is not None, "only what is asked is voted on"
    grantors = dict.fromkeys((*state.grantors, vote.by))
    if len(grantors) < state.opened.votes:
        return []
    said = {"by": ", ".join(grantors), "digest": vote.edit_digest}
    return [ApprovalGranted(**shared_fields(vote, ApprovalGranted) | said)]


def _timed(state: ApprovalState, at: datetime) -> Sequence[ApprovalEvent]:
    """Return the event of a passed time: the automatic grant, or the expiry."""
    if state.opened is None or not state.pending:
        return []
    if at >= state.opened.deadline_at:
        return [ApprovalExpired(at=at)]
    if state.opened.auto_at is not None and at >= state.opened.auto_at:
        return [ApprovalGranted(by=state.opened.auto_by)]
    return []


def evolve(state: ApprovalState, event: ApprovalEvent) -> ApprovalState:
    """Return the state after *event*."""
    match event:
        case ApprovalOpened():
            return replace(state, opened=event)
        case VoteGiven(message=message, verdict=verdict, by=by):
            grantors = (*state.grantors, by) if verdict == "grant" else state.grantors
            return replace(state, votes=(*state.votes, message), grantors=grantors)
        case ApprovalGranted():
            return replace(state, verdict="granted", **shared_fields(event, ApprovalGranted))
        case ApprovalDenied(by=by, note=note, resolution=said):
            return replace(state, verdict="denied", by=by, note=note, resolution=said)
        case ApprovalExpired():
            return replace(state, verdict="expired")
        case ApprovalSuperseded(reason=reason):
            return replace(state, verdict="superseded", by=reason)
        case _:
            assert_never(event)


APPROVAL: Decider[ApprovalCommand, ApprovalState, ApprovalEvent] = Decider(
    ApprovalState(), decide, evolve
)
