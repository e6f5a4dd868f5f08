"""The approval gate: opens approvals, takes votes, and answers with their outcome.

The gate owns no stream: every append is a compare-and-set on the approval's version
(I3). After a conflict the gate reads the new events and decides again. So several
gates may run at once, on any machine.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.deciders.approval import (
    APPROVAL,
    ApprovalCommand,
    ApprovalState,
    Expire,
    Open,
    Supersede,
    Vote,
    grant_note,
    refusal,
)
from cueline.errors import WrongExpectedVersionError
from cueline.events.approval import ApprovalOpened, SupersedeCode
from cueline.events.fact import shared_fields
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import GateAnswer
from cueline.events.stream import stream_name, tenant_of


@dataclass(frozen=True, slots=True)
class ApprovalName:
    """The name of an approval: session, effect and number."""

    session: str
    id: str

    @property
    def stream(self) -> str:
        """The stream of the approval."""
        return stream_name("approval", self.id, tenant_of(self.session))


@dataclass(frozen=True, slots=True)
class Opened:
    """An open approval, as first recorded; a second opening changes nothing."""

    digest: str
    deadline_at: datetime
    answer: GateAnswer
    votes: int = 1
    auto_at: datetime | None = None
    preview: str = ""


class GatePort(Protocol):
    """The gate as a session host sees it, local or remote. Each call may be repeated."""

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        """Open the approval; with *granted_by*, also record the grant."""

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        """Record a person's decision and return the gate's answer."""

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        """Expire the approval; the gate must have all decisions that were recorded before *at*."""

    async def supersede(self, name: ApprovalName, reason: SupersedeCode) -> GateAnswer:
        """Close the approval because it is no longer needed."""


class ApprovalGate:
    """See `GatePort`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def open(
        self, name: ApprovalName, opened: ApprovalOpened, granted_by: str | None
    ) -> Opened:
        state = await self._handle(name, Open(opened, granted_by))
        assert state.opened is not None, "opening opens"
        asked = state.opened
        return Opened(
            asked.digest,
            asked.deadline_at,
            _answer(name, state),
            asked.votes,
            asked.auto_at,
            asked.preview,
        )

    async def vote(self, name: ApprovalName, vote: Vote) -> GateAnswer:
        state, version = await self._load(name)
        while (refused := refusal(state, vote)) is None:
            try:
                state = await self._append(name, vote, state, version)
                return _with_notice(_answer(name, state), state, vote)
            except WrongExpectedVersionError:
                state, version = await self._load(name)
        return GateAnswer(approval=name.id, verdict=None, refusal=refused)

    async def expire(self, name: ApprovalName, at: datetime) -> GateAnswer:
        return _answer(name, await self._handle(name, Expire(at)))

    async def supersede(self, name: ApprovalName, reason: SupersedeCode) -> GateAnswer:
        return _answer(name, await self._handle(name, Supersede(reason)))

    async def _handle(self, name: ApprovalName, command: ApprovalCommand) -> ApprovalState:
        while True:
            state, version = await self._load(name)
            try:
                return await self._append(name, command, state, version)
            except WrongExpectedVersionError:
                continue

    async def _append(
        self, name: ApprovalName, command: ApprovalCommand, state: ApprovalState, version: int
    ) -> ApprovalState:
        events = APPROVAL.decide(command, state)
        if not events:
            return state
        by = command.by if isinstance(command, Vote) else None
        write = FactWrite(
            stream=name.stream,
            steps=[events],
            expected_version=version,
            actor=f"user:{by}" if by else "system:gate",
        )
        await self._journal.append([write], key=_key(command))
        return APPROVAL.replay(events, state)

    async def _load(self, name: ApprovalName) -> tuple[ApprovalState, int]:
        return await fold(self._journal, name.stream, APPROVAL, APPROVAL.initial_state)


def _key(command: ApprovalCommand) -> str:
    """Return the key of the append of *command*.

    A vote has the key of its message, so a repeated vote changes nothing. Any other command
    gets a new key; the expected version decides which command is first.
    """
    return command.message if isinstance(command, Vote) else uuid4().hex


def _answer(name: ApprovalName, state: ApprovalState) -> GateAnswer:
    return GateAnswer(approval=name.id, **shared_fields(state, GateAnswer))


def _with_notice(answer: GateAnswer, state: ApprovalState, vote: Vote) -> GateAnswer:
    """Return *answer*, with a note for the model if *vote* is a grant that runs the call."""
    assert state.opened is not None, "only what is asked is voted on"
    if vote.verdict != "grant" or vote.resolution == "happened":
        return answer
    return answer.model_copy(update={"told": grant_note(state.opened.tool, vote)})
