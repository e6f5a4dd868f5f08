"""The open questions of a session, and the possible answers of a person."""

from dataclasses import dataclass

from msgspec.structs import replace

from cueline.actors.fold import fold
from cueline.actors.inbox import Unread, unread_of
from cueline.deciders.approval import APPROVAL, ApprovalState, Vote, refusal, vote_of
from cueline.deciders.policy import always_scope
from cueline.deciders.session import SessionState
from cueline.errors import InvalidNameError
from cueline.events.agent import ToolSpec
from cueline.events.event_text import refusal_text
from cueline.events.inbox import DecisionGiven, Resolution
from cueline.events.journal import Journal
from cueline.events.message import Arguments
from cueline.events.session import ApprovalRequested
from cueline.events.store import RecordedEvent, from_us
from cueline.events.stream import stream_name, tenant_of
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalQuestion:
    """The facts of a question from the log, and the possible answers of the person here."""

    preview: str = ""
    """The change of the call, as a unified diff."""
    unpriced: str = ""
    """The reason why the estimated cost is unknown although the tool should estimate it."""
    barred: str = ""
    """The reason why this person may not allow the call; empty: they may."""
    fixed: str = ""
    """The reason why they can neither edit the call nor always allow it; empty: they can."""
    covers: str = ""
    """The calls that "always allow this" would cover."""


async def personal_question(
    log: OpenLog, state: SessionState, asked: ApprovalRequested
) -> PersonalQuestion | None:
    """Return the question *asked* for the person here; None if it is already decided."""
    journal, now, person = log.journal(), log.clock.now(), log.user
    approval = await approval_of(journal, f"{tenant_of(state.stream)}/{asked.approval}")
    if is_decided(asked.approval, approval, await unread_of(journal, state)):
        return None
    call = state.call(asked.effect)
    unpriced = "" if call is None else call.judged.unpriced
    if (opened := approval.opened) is None:
        return PersonalQuestion(unpriced=unpriced)
    happened: Resolution | None = "happened" if opened.question == "did_it_happen" else None
    tool = state.setup.tools.get(opened.tool) if state.setup is not None else None
    answer = "yes" if opened.question == "what_to_answer" else ""
    plain = Vote("grant", opened.digest, person, "", "", now, resolution=happened, result=answer)
    return PersonalQuestion(
        preview=opened.preview,
        unpriced=unpriced,
        barred=refused_text(approval, plain),
        fixed=refused_text(approval, replace(plain, always=())),
        covers="" if tool is None else always_text(tool, opened.arguments),
    )


def always_text(tool: ToolSpec, arguments: Arguments) -> str:
    """Return the scope of "always allow this" for a call of *tool* with these arguments."""
    if not tool.paths:
        return f"{tool.name} with exactly these arguments"
    return f"{tool.name} at {', '.join(always_scope(tool, arguments))}, whatever else is given"


def refused_text(state: ApprovalState, vote: Vote) -> str:
    """Return why the gate would refuse *vote*; empty if it would accept it."""
    refused = refusal(state, vote)
    return "" if refused is None else refusal_text(refused)


async def approval_of(journal: Journal, name: str) -> ApprovalState:
    """Return the folded approval *name*; an unopened approval if the log has no event of it."""
    state = APPROVAL.initial_state
    tenant, slash, rest = name.rpartition("/")
    try:
        stream = stream_name("approval", rest, tenant) if slash else stream_name("approval", name)
    except InvalidNameError:
        return state
    return (await fold(journal, stream, APPROVAL, state))[0]


def is_decided(name: str, approval: ApprovalState, unread: Unread) -> bool:
    """Whether *approval* has a verdict after *unread* is read."""
    for recorded, said in unread:
        if isinstance(said, DecisionGiven) and said.approval == name:
            approval = read_on(approval, recorded, said)
    return approval.verdict is not None


def read_on(state: ApprovalState, recorded: RecordedEvent, said: DecisionGiven) -> ApprovalState:
    """Return the gate's approval after the decision *said*."""
    message = f"{recorded.stream}@{recorded.version}"
    vote: Vote = vote_of(said, message, from_us(recorded.recorded_us))
    return APPROVAL.replay(APPROVAL.decide(vote, state), state)
