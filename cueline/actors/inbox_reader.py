"""Reads a session's inbox, and passes decisions to the gate before the session sees them.

Messages are read in order. A decision that cannot be passed on yet blocks the
messages after it, and nothing else.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import cast

from cueline.actors.approval_gate import ApprovalName
from cueline.actors.entity import RETRY_SECONDS, Entity
from cueline.actors.host_dependencies import HostDependencies
from cueline.deciders.approval import Vote, valid_until, vote_of
from cueline.deciders.budget import Raise
from cueline.deciders.session.budget import budget_of, path_of
from cueline.deciders.session.judging import digest_of
from cueline.deciders.session.limit import refusal
from cueline.errors import CuelineError
from cueline.events.codec import Redacted
from cueline.events.fact import Fact
from cueline.events.inbox import DecisionGiven, InboxMessage, MessageSent, RaiseAsked, ResumeAsked
from cueline.events.sanitize import Redactor, sanitize
from cueline.events.session import ApprovalResolved, GateAnswer, MessageReceived, SessionEvent
from cueline.events.store import RecordedEvent, from_us
from cueline.events.stream import effect_of, id_of, sibling

ERASED = MessageSent(lane="note", text="(This message was erased before it was read.)")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class InboxReader:
    """Reads the inbox of one session for its owner (I7)."""

    __slots__ = (
        "_dependencies",
        "_entity",
        "again_at",
        "held_up",
        "news",
        "read_at",
        "secret_versions",
    )

    def __init__(self, entity: Entity, dependencies: HostDependencies) -> None:
        self._entity = entity
        self._dependencies = dependencies
        self.news = True
        """Whether there may be new messages."""
        self.read_at = _LONG_AGO
        """When the inbox was last read to its end."""
        self.held_up = False
        """Whether a message has to be read or passed on again."""
        self.secret_versions: tuple[int, ...] = ()
        """The messages that held a secret; they are redacted once they are read."""
        self.again_at: datetime | None = None
        """When to retry a log, gate or ledger that did not answer."""

    async def read(
        self, asks: Callable[[str], bool], brought: Sequence[SessionEvent], redactor: Redactor
    ) -> list[MessageReceived]:
        """Return the unread messages without secrets; decisions have the gate's answer.

        The list ends before a decision on an effect whose question is being opened (*asks*): the
        session has to record the question first. It also ends before a resume that came after the
        end of a question, until that end is in *brought*.
        """
        if not self.news:
            return []
        now = self._dependencies.clock.now()
        if self.again_at is not None and now < self.again_at:
            return []
        self.news, self.held_up, self.again_at = False, False, None
        received: list[MessageReceived] = []
        inbox, seen = sibling(self._entity.stream, "inbox"), self._entity.state.inbox_seen
        try:
            async for recorded, said in self._entity.journal.read(inbox, seen):
                if isinstance(said, ResumeAsked) and self._ends_first(recorded, brought):
                    self.news = True
                    break
                kept, had_secret = sanitize(_message(said), redactor)
                message = await self._received(recorded, kept, asks)
                if message is None:
                    self.news = self.held_up = True
                    return received
                received.append(message)
                if had_secret:
                    self.secret_versions = (*self.secret_versions, recorded.version)
        except CuelineError as error:
            if not error.retryable:
                raise
            # Only the owner has the outcomes of running effects: return these first.
            self.news = self.held_up = True
            self.again_at = self._dependencies.clock.now() + timedelta(seconds=RETRY_SECONDS)
            return received
        self.read_at = now
        return received

    def _ends_first(self, resumed: RecordedEvent, brought: Sequence[SessionEvent]) -> bool:
        """Whether an approval ended before the resume; then its end has to be recorded first.

        Both count from the times at which they were recorded, not read (I14).
        """
        state, at = self._entity.state, from_us(resumed.recorded_us)
        ended = {fact.approval for fact in brought if isinstance(fact, ApprovalResolved)}
        asked = [call.approval for call in state.open_calls if call.approval and call.asking]
        over = [each for each in asked if each.closes_at < at and each.id not in ended]
        return bool(over) and not state.poisoned

    async def _received(
        self, recorded: RecordedEvent, message: InboxMessage, asks: Callable[[str], bool]
    ) -> MessageReceived | None:
        """Return the message in its recorded form; None if it cannot be recorded yet."""
        at = from_us(recorded.recorded_us)
        name = f"{recorded.stream}@{recorded.version}"
        answer = None
        if isinstance(message, DecisionGiven) and _is_of(self._entity.stream, message.approval):
            if asks(effect_of(message.approval)):
                return None
            approval = ApprovalName(self._entity.stream, message.approval)
            vote = self._vote(message, name, at)
            answer = await self._estimated(
                self._timed(await self._dependencies.gate.vote(approval, vote))
            )
        if isinstance(message, RaiseAsked):
            await self._raise(message, name)
        return MessageReceived(
            inbox_version=recorded.version, recorded_at=at, message=message, gate_answer=answer
        )

    def _timed(self, answer: GateAnswer) -> GateAnswer:
        """Add the expiry to a grant that is read after its deadline (I9, I14)."""
        call = self._entity.state.call_of_approval(answer.approval)
        asked = None if call is None else call.approval
        if answer.verdict != "granted" or asked is None or answer.resolution == "happened":
            return answer
        until = valid_until(asked.deadline_at, self._dependencies.clock.now())
        return answer if until is None else answer.model_copy(update={"valid_until": until})

    async def _estimated(self, answer: GateAnswer) -> GateAnswer:
        """Add the estimated cost of an edited call; the policy judges it like any other."""
        state = self._entity.state
        call = state.call(effect_of(answer.approval))
        if answer.edit is None or call is None or state.setup is None:
            return answer
        tool = state.setup.tools[call.tool]
        if not tool.estimates:
            return answer
        estimate = await self._dependencies.estimate(tool, answer.edit)
        return answer.model_copy(update={"usd": estimate.usd})

    async def _raise(self, message: RaiseAsked, name: str) -> None:
        """Raise the limits at the ledger before the session records the message."""
        state = self._entity.state
        if not state.limited or refusal(state.limit_state.limits, message) is not None:
            return
        higher = Raise(state.stream, path_of(state), message.max_tokens, message.max_cost, name)
        await self._dependencies.ledger.raise_limits(budget_of(state), higher)

    def _vote(self, message: DecisionGiven, name: str, at: datetime) -> Vote:
        """Return the decision as the gate's vote; an edit gets its own digest (I9)."""
        state = self._entity.state
        call = state.call(effect_of(message.approval))
        digest = ""
        if message.edit is not None and call is not None:
            digest = digest_of(state, call.effect, call.tool, message.edit)
        return vote_of(message, name, at, digest)


def _message(said: Fact | Redacted) -> InboxMessage:
    return ERASED if isinstance(said, Redacted) else cast("InboxMessage", said)


def _is_of(session: str, approval: str) -> bool:
    """Whether *approval* has the form `<session>.<turn>.<index>.<n>`."""
    owner, *numbers = approval.rsplit(".", 3)
    return owner == id_of(session) and len(numbers) == 3 and all(n.isdecimal() for n in numbers)  # noqa: PLR2004 - turn, index, n
