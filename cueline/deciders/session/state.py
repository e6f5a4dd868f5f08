"""What the rules of a session remember: open effects, counters, marks, no bodies."""

from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from cueline.deciders.session.limit_state import BudgetAccount, LimitState
from cueline.deciders.session.turn import BreakerWait, Call, Turn
from cueline.deciders.standing import StandingGrant
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.cause import Cause
from cueline.events.inbox import Lane
from cueline.events.session import StopCode, WaitKind

STATE_FOLD: Final = 1
"""The number of this fold: raised when a fact comes to another state than before."""
MAX_TAKEOVERS = 3
"""So many takeovers without a finished effect in between, and a person is asked."""


class Status(StrEnum):
    """What the work is; whether somebody drives it is presence, not status."""

    CREATED = "created"
    RUNNING = "running"
    IDLE = "idle"
    WAITING = "waiting"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.STOPPED})
DRIVEN = frozenset({Status.RUNNING, Status.STOPPING})
"""In these somebody has to drive it."""
LIVE = frozenset(Status) - TERMINAL - {Status.CREATED}
"""It began, and is not over: nothing follows, and nothing is due, in any other."""


class PendingMessage(Struct, frozen=True):
    """A message that the model was not told yet."""

    inbox_version: int
    lane: Lane
    fingerprints: tuple[str, ...]


class PromptDigests(Struct, frozen=True):
    """Digests that stand for the prompt."""

    digest: str = ""
    requested: str = ""
    """What the last request sent."""
    results: tuple[tuple[str, str], ...] = ()
    """Effect and fingerprint of results that the model was not told yet."""


class TreePlace(Struct, frozen=True):
    """Where a session is in its tree."""

    parent: str | None = None
    root: str | None = None
    """None for one without a parent."""
    depth: int = 0
    allowances: tuple[Allowance, ...] = ()
    """The limits of those above it, the nearest first."""


ROOT = TreePlace()
"""Of a session that nobody asked for but a person."""


class Setup(Struct, frozen=True):
    """How the session was started."""

    agent: AgentSpec
    open: bool
    attached: bool
    tools: dict[str, ToolSpec]
    limited: bool = False
    """A limit of money or tokens is on its way to the root: it asks the ledger."""
    asked_by: str = ""
    """The person who wanted the session, where that is known."""
    standing: tuple[StandingGrant, ...] = ()
    """What people allowed for the rest of it."""
    waived: tuple[str, ...] = ()
    """Secrets that people let it go on without."""
    first_turn: int = 0
    """The number of the turn before its first: a fork goes on counting."""
    family: TreePlace = ROOT


class LimitHold(Struct, frozen=True):
    """Why a person has to say that the session goes on."""

    cause: Cause


class Wait(Struct, frozen=True):
    """Why and until when the session rests, as recorded."""

    kind: WaitKind
    cause: Cause
    deadline_at: datetime | None = None
    exhausted: bool = False

    @property
    def raisable(self) -> str:
        """The limit that has to be raised before it can go on; empty: none."""
        return self.cause.limit if self.is_pause else ""

    @property
    def is_pause(self) -> bool:
        """Whether only a person can have it go on: who is busy is called when there is room."""
        return self.kind == "operator" or self.exhausted


class Stop(Struct, frozen=True):
    """Somebody wants the session to end."""

    by: str
    code: StopCode | Literal["approval_expired"]
    """`approval_expired`: it ends as failed."""
    reason: str = ""
    """The words of the person."""
    approval: str = ""
    """The one that nobody decided."""


UNMARKED = PromptDigests()


class SessionState(Struct, frozen=True):
    """One session, folded."""

    stream: str = ""
    status: Status = Status.CREATED
    setup: Setup | None = None
    turn: Turn = Turn()
    mail: tuple[PendingMessage, ...] = ()
    prompt_digests: PromptDigests = UNMARKED
    limit_state: LimitState = LimitState()
    inbox_read: int = 0
    hold: LimitHold | None = None
    """A person has to say that it goes on; nothing new starts."""
    waiting: Wait | None = None
    stop: Stop | None = None
    takeovers: int = 0
    """Since the last finished effect."""
    account: BudgetAccount = BudgetAccount()
    partial: bool = False
    """A tool that is not critical failed since it began, or was idle last."""

    @property
    def finished(self) -> bool:
        """Whether the outcome is final (I6)."""
        return self.status in TERMINAL

    @property
    def inbox_seen(self) -> int:
        """How much of its inbox is not news: the first message is the wish for the session."""
        return max(self.inbox_read, 1)

    @property
    def poisoned(self) -> bool:
        """Whether it took down so many hosts that a person has to look at it first."""
        return self.takeovers >= MAX_TAKEOVERS and self.hold is not None

    @property
    def blocked_by_breaker(self) -> tuple[BreakerWait, ...]:
        """What breakers keep back."""
        model = self.turn.model
        kept = [
            call.blocked_by_breaker
            for call in self.turn.calls
            if call.blocked_by_breaker and call.phase != "closed"
        ]
        return (
            (model.blocked_by_breaker, *kept)
            if model is not None and model.blocked_by_breaker
            else tuple(kept)
        )

    @property
    def limited(self) -> bool:
        """Whether it asks the ledger before it asks the model."""
        return self.setup is not None and self.setup.limited

    @property
    def agent(self) -> AgentSpec:
        """The recorded agent."""
        assert self.setup is not None, "a session that was not started has no agent"
        return self.setup.agent

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """The calls of this turn that have no outcome yet."""
        # Of a list: a generator takes twice as long, and every rule asks.
        return tuple([call for call in self.turn.calls if call.phase != "closed"])

    @property
    def questions(self) -> list[str]:
        """The approvals that wait for a person's word."""
        return [call.approval.id for call in self.open_calls if call.approval and call.asking]

    def call(self, effect: str) -> Call | None:
        """Return the call of that effect in this turn."""
        for call in self.turn.calls:
            if call.effect == effect:
                return call
        return None

    def call_of_approval(self, approval: str) -> Call | None:
        """Return the call that an open or granted approval is about."""
        return next(
            (c for c in self.turn.calls if c.approval is not None and c.approval.id == approval),
            None,
        )

    @property
    def steered(self) -> bool:
        """Whether a message waits that ends the turn's calls."""
        for mail in self.mail:
            if mail.lane == "steer":
                return True
        return False


def session_of(stream: str) -> SessionState:
    """Return the state of a session before its first fact."""
    return SessionState(stream=stream)
