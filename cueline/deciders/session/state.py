"""What the rules of a session remember: open effects, counters, marks, no bodies.

What changes with nearly every fact has no slots: see `decider.replace`.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal, NamedTuple

from cueline.deciders.policy import UNJUDGED, Judgement, Standing, ToolGate
from cueline.events.agent import AgentSpec, Declared, Limits, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.inbox import ChildAsked, ChildEnded, Lane
from cueline.events.message import Arguments, Cost, Usage
from cueline.events.session import LimitRaised, Verdict, WaitKind

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


@dataclass(frozen=True, slots=True)
class Held:
    """A breaker keeps an effect back, which therefore never went out."""

    until: datetime
    why: str


@dataclass(frozen=True, slots=True)
class Room:
    """A model call that its budget has no room for."""

    why: str
    until: datetime | None
    """When it asks again; None: only a raise helps."""


@dataclass(frozen=True)
class ModelCall:
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
    error: str = ""
    """Why it was given up."""
    fatal: bool = False
    """Nobody can mend it."""
    held: Held | None = None
    granted: bool = False
    """The ledger holds what it may cost."""
    room: Room | None = None
    """It waits for room."""


Question = Literal["may_it_run", "did_it_happen"]


@dataclass(frozen=True, slots=True)
class Answer:
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


@dataclass(frozen=True)
class Approval:
    """A question to a person that is open, answered, or granted."""

    id: str
    digest: str
    deadline_at: datetime
    question: Question
    answer: Answer | None = None
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


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a call in doubt happened, and who says so."""

    happened: bool
    by: str


@dataclass(frozen=True, slots=True)
class Reach:
    """A call for which no runner could be reached."""

    until: datetime
    """When the wait is over; it is never put off."""
    phase: Literal["waiting", "trying", "last_try"]


Phase = Literal["requested", "started", "retry", "in_doubt", "closed"]


@dataclass(frozen=True)
class Call:
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
    """What the rules say of it."""
    phase: Phase = "requested"
    attempt: int = 0
    failures: int = 0
    failing_since: datetime | None = None
    runner: str | None = None
    retry_at: datetime | None = None
    rests: bool = False
    approval: Approval | None = None
    asked: int = 0
    """How often a person was asked about it."""
    escalated: bool = False
    """Nobody answered in time, and others are asked."""
    told: tuple[tuple[str, int], ...] = ()
    """Of which question, if any, people were told by which hook."""
    problem: str | None = None
    """Why it cannot be run at all."""
    evidence: str = ""
    """How it is known that the runner of a call in doubt is gone."""
    unclear: bool = False
    """Its `reconcile` could not tell."""
    ruling: Ruling | None = None
    """What a person said of a call in doubt."""
    reach: Reach | None = None
    held: Held | None = None

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
        return self.declared == "reconcile" and not self.unclear and self.ruling is None

    @property
    def allowed(self) -> bool:
        """Whether nobody has to be asked (any more)."""
        return not self.gated or (self.approval is not None and not self.asking)


@dataclass(frozen=True, slots=True)
class Mail:
    """A message that the model was not told yet."""

    inbox_version: int
    lane: Lane
    fingerprints: tuple[str, ...]


@dataclass(frozen=True)
class Turn:
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


class Marks(NamedTuple):
    """Digests that stand for the prompt; few, and new with most facts: so a tuple."""

    digest: str = ""
    requested: str = ""
    """What the last request sent."""
    results: tuple[tuple[str, str], ...] = ()
    """Effect and fingerprint of results that the model was not told yet."""


@dataclass(frozen=True, slots=True)
class Bill:
    """A model call that is over, and that the ledger has to close."""

    effect: str
    attempt: int
    started: bool = True
    """False: it never was, and what is held for it is released."""
    usage: Usage | None = None
    """None: nobody knows; all that was reserved counts as spent."""
    cost: Cost | None = None
    fallback: int = 0
    """Which of the agent's models was asked."""


@dataclass(frozen=True, slots=True)
class Account:
    """What is open between the session and its budget, and news of its children."""

    bills: tuple[Bill, ...] = ()
    news: tuple[ChildAsked | ChildEnded, ...] = ()
    """Messages that are told in facts of their own, which follow at once."""


@dataclass(frozen=True, slots=True)
class Family:
    """Where a session is in its tree."""

    parent: str | None = None
    root: str | None = None
    """None for one without a parent."""
    depth: int = 0
    allowances: tuple[Allowance, ...] = ()
    """The limits of those above it, the nearest first."""


ROOT = Family()
"""Of a session that nobody asked for but a person."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How the session was started."""

    agent: AgentSpec
    open: bool
    attached: bool
    tools: dict[str, ToolSpec]
    gates: dict[str, ToolGate]
    """What the rules say of each tool, whatever it is called with."""
    asked_by: str = ""
    """The person who wanted the session, where that is known."""
    standing: tuple[Standing, ...] = ()
    """What people allowed for the rest of it."""
    first_turn: int = 0
    """The number of the turn before its first: a fork goes on counting."""
    family: Family = ROOT

    @property
    def limited(self) -> bool:
        """Whether a limit of money or tokens is on its way to the root: it asks the ledger."""
        limits = self.agent.limits
        own = limits.max_tokens is not None or limits.max_cost is not None
        return own or bool(self.family.allowances)


@dataclass(frozen=True, slots=True)
class Wait:
    """Why and until when the session rests, as recorded."""

    kind: WaitKind
    why: str
    deadline_at: datetime | None = None
    exhausted: bool = False

    @property
    def is_pause(self) -> bool:
        """Whether only a person can have it go on: who is busy is called when there is room."""
        return self.kind == "operator" or self.exhausted


@dataclass(frozen=True, slots=True)
class Stop:
    """Somebody wants the session to end."""

    by: str
    reason: str
    fails: bool = False
    """It ends as failed."""


_LIMITS = Limits()
Rung = tuple[str, float, float]
"""A limit, the share of it that was told, and what the share was counted from."""


@dataclass(frozen=True, slots=True)
class Meter:
    """What the session may use, and what was said of it; what changes seldom."""

    limits: Limits = _LIMITS
    """As they are now: they can be raised."""
    began_at: datetime | None = None
    seen_at: datetime | None = None
    """The latest moment that is known, where the time since the start is limited."""
    warned: tuple[Rung, ...] = ()
    notes: tuple[str, ...] = ()
    """Fingerprints of what the model is told next."""
    shares: tuple[tuple[str, float], ...] = ()
    """Of tokens and money, what the ledger said last: the share of the fullest limit."""
    asked: LimitRaised | None = None
    """What somebody wants to be higher, and is not yet."""


UNMARKED = Marks()


@dataclass(frozen=True)
class SessionState:
    """One session, folded."""

    stream: str = ""
    status: Status = Status.CREATED
    setup: Setup | None = None
    epoch: int = 0
    turn: Turn = Turn()
    mail: tuple[Mail, ...] = ()
    marks: Marks = UNMARKED
    meter: Meter = Meter()
    inbox_read: int = 0
    hold: str | None = None
    """Why a person has to say that it goes on; nothing new starts."""
    waiting: Wait | None = None
    stop: Stop | None = None
    takeovers: int = 0
    """Since the last finished effect."""
    account: Account = Account()
    partial: bool = False
    """A tool that is not critical failed since it began, or was idle last."""

    @property
    def finished(self) -> bool:
        """Whether the outcome is final (I6)."""
        return self.status in TERMINAL

    @property
    def poisoned(self) -> bool:
        """Whether it took down so many hosts that a person has to look at it first."""
        return self.takeovers >= MAX_TAKEOVERS and self.hold is not None

    @property
    def runner_wait(self) -> datetime | None:
        """Until when it waits for a runner to be reached."""
        times = [call.reach.until for call in self.open_calls if call.reach and call.unreached]
        return min(times, default=None)

    @property
    def held(self) -> tuple[Held, ...]:
        """What breakers keep back."""
        model = self.turn.model
        held = [call.held for call in self.turn.calls if call.held and call.phase != "closed"]
        return (model.held, *held) if model is not None and model.held else tuple(held)

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
        return any(mail.lane == "steer" for mail in self.mail)


def session_of(stream: str) -> SessionState:
    """Return the state of a session before its first fact."""
    return SessionState(stream=stream)
