"""What a person says of a question, and whether it counts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, cast

from msgspec.structs import replace

from cueline.actors.fold import fold
from cueline.cli.editing import always_of, checked_edit
from cueline.cli.naming import as_typed
from cueline.console.question import ANSWERED
from cueline.console.text import date_time
from cueline.deciders.approval import APPROVAL, ApprovalState, Vote, refusal, vote_of
from cueline.environment import who
from cueline.errors import InvalidNameError, NotPendingError
from cueline.events.agent import AgentSpec
from cueline.events.approval import ApprovalOpened
from cueline.events.inbox import DecisionGiven, Resolution
from cueline.events.journal import Journal
from cueline.events.store import RecordedEvent, from_us
from cueline.events.stream import sibling, stream_name

_DONE: Final = {"grant": "granted", "deny": "denied"}


def done(verdict: str, resolution: str | None) -> str:
    """Return what a decision did, in words."""
    return ANSWERED[cast("Resolution", resolution)] if resolution else _DONE[verdict]


@dataclass(frozen=True, slots=True)
class Word:
    """What a person says of a question."""

    verdict: Literal["grant", "deny"]
    note: str
    edit: tuple[str, ...] = ()
    within: tuple[str, ...] | None = None
    """Where it holds for the rest of the session; empty: for the same paths."""
    resolution: Resolution | None = None
    """Of a call in doubt; to deny is to say that it is not to run."""
    result: str = ""
    """What the call gave, where it happened."""


@dataclass(frozen=True, slots=True)
class Say:
    """What a person has to say in a question."""

    barred: str
    """Why they may not allow it; empty where they may."""
    fixed: str
    """Why they can only allow it as it is, and only this once; empty where they can do more."""


async def approval_of(journal: Journal, name: str) -> ApprovalState:
    """Fold the approval that *name* stands for; one that does not exist was never opened."""
    state = APPROVAL.initial_state
    tenant, slash, rest = name.rpartition("/")
    try:
        stream = stream_name("approval", rest, tenant) if slash else stream_name("approval", name)
    except InvalidNameError:
        return state
    return (await fold(journal, stream, APPROVAL, state))[0]


def say_of(person: str, state: ApprovalState, now: datetime) -> Say:
    """Return what *person* could say now, by the rules that will judge it."""
    opened = state.opened
    assert opened is not None, "only what was opened is asked"
    happened: Resolution | None = "happened" if opened.question == "did_it_happen" else None
    plain = Vote("grant", opened.digest, person, "", "", now, resolution=happened)
    more = replace(plain, always=())
    return Say(barred=refusal(state, plain) or "", fixed=refusal(state, more) or "")


def pending_or_refused(name: str, state: ApprovalState) -> ApprovalOpened:
    """Return what is asked.

    Raises:
        NotPendingError: nothing is, any more; the message says what became of it.
    """
    if state.opened is None:
        why = "there is no such approval; `cueline pending` lists what waits"
        raise NotPendingError(as_typed(name), why)
    if state.verdict is not None:
        by = f" by {state.by}" if state.by else ""
        raise NotPendingError(name, f"it does not wait any more: {state.verdict}{by}")
    if state.opened.deadline_at < datetime.now(UTC):
        passed = date_time(state.opened.deadline_at)
        raise NotPendingError(name, f"its deadline passed at {passed}")
    return state.opened


async def decision_of(
    name: str, state: ApprovalState, word: Word, agent: AgentSpec
) -> DecisionGiven:
    """Return the decision as it goes into the inbox.

    Raises:
        NotPendingError: the gate would refuse it when it reads it; the message says why.
        ConfigError: an edit has no form, or does not fit the tool; or that has no paths.
        RejectedError: no person can allow what the edit says.
    """
    opened = pending_or_refused(name, state)
    in_doubt = opened.question == "did_it_happen"
    edit = await checked_edit(opened, word.edit, agent) if word.edit else None
    always = None
    if word.within is not None:
        always = always_of(opened, edit, agent, word.within)
    decision = DecisionGiven(
        approval=name,
        digest=opened.digest,
        verdict=word.verdict,
        by=who(),
        note=word.note,
        edit=edit,
        always=always,
        channel="cli",
        resolution="do_not_run" if in_doubt and word.verdict == "deny" else word.resolution,
        result=word.result,
    )
    if (reason := refusal(state, vote_of(decision, "", datetime.now(UTC)))) is not None:
        raise NotPendingError(name, reason)
    return decision


def read_on(state: ApprovalState, recorded: RecordedEvent, said: DecisionGiven) -> ApprovalState:
    """Return what the gate makes of its approval when *said* is handed over to it."""
    message = f"{recorded.stream}@{recorded.version}"
    vote = vote_of(said, message, from_us(recorded.recorded_us))
    return APPROVAL.replay(APPROVAL.decide(vote, state), state)


async def was_given(
    journal: Journal, state: ApprovalState, decision: DecisionGiven, until: int | None = None
) -> bool:
    """Whether the same decision waits in the inbox already, up to version *until*.

    Raises:
        NotPendingError: another one does, and will count first.
    """
    assert state.opened is not None, "only what was opened is decided"
    inbox = sibling(state.opened.session, "inbox")
    async for recorded, said in journal.read(inbox, until=until):
        if not isinstance(said, DecisionGiven) or said.approval != decision.approval:
            continue
        before, state = state, read_on(state, recorded, said)
        enough = state.verdict is not None or said.by == decision.by
        if state != before and _holds(said, decision) and enough:
            return True
    reason = "" if state.verdict is None else f"it was {state.verdict} by {state.by} before"
    if decision.verdict == "grant" and decision.by in state.grantors:
        reason = reason or f"{decision.by} has allowed it before"
    if reason:
        raise NotPendingError(decision.approval, f"{reason}, which counts when it is next driven")
    return False


def _holds(said: DecisionGiven, decision: DecisionGiven) -> bool:
    """Whether *decision* says nothing that is not *said*."""
    same = (said.verdict, said.edit) == (decision.verdict, decision.edit)
    same = same and said.resolution == decision.resolution
    return (
        same
        and decision.result in ("", said.result)
        and decision.note in ("", said.note)
        and decision.always in (None, said.always)
    )
