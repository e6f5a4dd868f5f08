"""What the rules remember of the current turn: its model call, its tool calls, no bodies."""

from datetime import datetime
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from cueline.events.agent import Declared
from cueline.events.cause import Cause
from cueline.events.inbox import Resolution
from cueline.events.message import Arguments
from cueline.events.session import UNJUDGED, Judgement, Verdict


class BreakerWait(Struct, frozen=True):
    """A breaker keeps an effect back, which therefore never went out."""

    until: datetime
    cause: Cause


class BudgetWait(Struct, frozen=True):
    """A model call that its budget has no room for."""

    cause: Cause
    until: datetime | None
    """When it asks again; None: only a raise helps."""


class ModelCall(Struct, frozen=True):
    """The model call of the current turn, while it is open."""

    effect: str
    attempt: int
    phase: Literal["requested", "started", "retry", "given_up"]
    fallback: int = 0
    """Which of the agent's models is asked: 0 its own, n its n-th fallback."""
    failures: int = 0
    """Of that model; since the turn began, or a person resumed."""
    failing_since: datetime | None = None
    """When the first of them was."""
    retry_at: datetime | None = None
    rests: bool = False
    """The retry is far enough away for the session to rest."""
    error: Cause | None = None
    """The last failure."""
    fatal: bool = False
    """Nobody can mend it."""
    blocked_by_breaker: BreakerWait | None = None
    granted: bool = False
    """The ledger holds what it may cost."""
    room: BudgetWait | None = None
    """It waits for room."""
    early: bool = False
    """A person resumed: it takes the probe of an open breaker before its time."""


Question = Literal["may_it_run", "did_it_happen"]


class ApprovalAnswer(Struct, frozen=True):
    """What the gate made of a decision."""

    verdict: Verdict
    by: str
    note: str = ""
    edit: Arguments | None = None
    """Held until it is resolved in a fact of its own, which follows at once."""
    digest: str = ""
    always: tuple[str, ...] | None = None
    usd: Decimal | None = None
    """What it is estimated to cost then."""
    valid_until: datetime | None = None
    """Until when a grant counts that was read after its deadline."""
    resolution: Resolution | None = None
    """Of a call in doubt."""
    result: str = ""


class CallApproval(Struct, frozen=True):
    """A question to a person that is open, answered, or granted."""

    id: str
    digest: str
    deadline_at: datetime
    """When it expires; of a grant, until when it counts."""
    question: Question
    answer: ApprovalAnswer | None = None
    """Known to the session, but not resolved yet."""
    granted: str | None = None
    """Who allowed the call."""
    auto_at: datetime | None = None
    """When it is granted if nobody has denied it."""
    people_only: bool = False
    """It is never granted automatically."""
    escalated: bool = False
    """Others are asked already, for nobody answered in time."""
    seen: str = ""
    """Digest of the difference that was shown."""

    @property
    def closes_at(self) -> datetime:
        """When it is decided by the time alone."""
        return self.deadline_at if self.auto_at is None else min(self.auto_at, self.deadline_at)


class InDoubtResolution(Struct, frozen=True):
    """What becomes of a call in doubt, and who says so."""

    resolution: Resolution
    by: str
    note: str = ""
    result: str = ""


class RunnerWait(Struct, frozen=True):
    """A call for which no runner could be reached."""

    until: datetime
    """When the wait is over; it is never put off."""
    phase: Literal["waiting", "trying", "last_try"]


class Problem(Struct, frozen=True):
    """Why a call is not run at all."""

    code: Literal["judged", "rejected", "expired", "tool_changed"]
    text: str = ""
    """Of `judged`, what the rules said; of `rejected`, the note of the person."""


Phase = Literal["requested", "started", "retry", "in_doubt", "closed"]


class Call(Struct, frozen=True):
    """One tool call of the current turn."""

    effect: str
    id: str
    """The provider's own id of the call."""
    tool: str
    declared: Declared
    gated: bool
    """A person has to allow it."""
    digest: str
    """Of exactly what will run (I9)."""
    judged: Judgement = UNJUDGED
    """What the rules said of it."""
    phase: Phase = "requested"
    attempt: int = 0
    failures: int = 0
    failing_since: datetime | None = None
    runner: str | None = None
    retry_at: datetime | None = None
    rests: bool = False
    approval: CallApproval | None = None
    asked: int = 0
    """How often a person was asked about it."""
    escalated: bool = False
    """Nobody answered in time, and others are asked."""
    told: tuple[tuple[str, int], ...] = ()
    """Of which question, if any, people were told by which hook."""
    problem: Problem | None = None
    """Why it cannot be run at all."""
    doubt: Cause | None = None
    """How it is known that nobody will report the outcome of a call in doubt."""
    unclear: bool = False
    """Its `reconcile` could not tell."""
    in_doubt_resolution: InDoubtResolution | None = None
    """What a person said of a call in doubt."""
    reach: RunnerWait | None = None
    blocked_by_breaker: BreakerWait | None = None
    early: bool = False
    """As of `ModelCall`."""

    @property
    def repeatable(self) -> bool:
        """Whether doing it twice is harmless: it may run beside others, and again."""
        return self.declared in ("read_only", "idempotent")

    @property
    def asking(self) -> bool:
        """Whether a person's answer is awaited."""
        return self.approval is not None and self.approval.granted is None

    @property
    def unreached(self) -> bool:
        """Whether a runner for it is waited for."""
        return self.reach is not None and self.reach.phase == "waiting"

    @property
    def reconciles(self) -> bool:
        """Whether the tool itself can still be asked what became of it."""
        return (
            self.declared == "reconcile" and not self.unclear and self.in_doubt_resolution is None
        )

    @property
    def allowed(self) -> bool:
        """Whether nobody has to be asked (any more)."""
        return not self.gated or (self.approval is not None and not self.asking)


class Turn(Struct, frozen=True):
    """Where the conversation is."""

    number: int = 0
    since_user: int = 0
    """Turns since the last message of a user came, or was told to the model."""
    model: ModelCall | None = None
    calls: tuple[Call, ...] = ()
    active_seconds: float = 0.0
    """What the calls of this turn and of all before it took, as far as it is known."""
    unanswered: bool = False
    """The model was asked, and did not answer yet."""
    answer: str = ""
    """What it said, when it asked for nothing; until it is asked again."""
    fallback: int = 0
    """Which of the agent's models was asked last."""
