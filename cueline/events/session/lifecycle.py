"""Facts of the start, messages, waits, cost and end of a session."""

from decimal import Decimal
from functools import partial
from operator import is_, not_
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.agent import AgentSpec
from cueline.events.budget import Allowance
from cueline.events.codes import Cause, Refusal
from cueline.events.fact import Fact, Part
from cueline.events.inbox import InboxMessage
from cueline.events.message import Attachment, Cost
from cueline.events.session.question import GateAnswer
from cueline.events.start import ChildCall, Run, Schedule

WaitKind = Literal[
    "operator",
    "time",
    "budget",
    "approval",
    "message",
    "child",
    "sandbox",
    "runner",
    "breaker",
    "retry",
]
"""Why a session waits, strongest first."""
StopCode = Literal["asked", "call_denied"]
"""Why a session was ended: a person asked for it, or denied a call."""
WakeCode = Literal["deadline", "message", "replay", "runner", "breaker", "work"]
"""The reasons why a session continues."""


class SessionStarted(Fact):
    """The first owner activated the session; this fact is for version 1 of its inbox."""

    type: Literal["SessionStarted"] = "SessionStarted"
    agent: AgentSpec
    goal: str | None
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)
    """The attachments of the goal."""
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The parameters, by the agent's `parameters_schema`."""
    open: bool
    attached: bool
    labels: dict[str, str] = {}
    asked_by: str = ""
    """The person who started it, if known."""
    epoch: int
    at: AwareDatetime | None = None
    """The start time; wall time counts from it."""
    parent: str | None = None
    """The parent session."""
    root: str | None = None
    """The topmost session of its tree; None for one without a parent."""
    depth: int = 0
    """The number of its ancestors."""
    allowances: tuple[Allowance, ...] = ()
    """The limits of its ancestors, nearest first."""
    call: ChildCall | None = Field(default=None, exclude_if=not_)
    """The call of its parent that started it; None: a person or program did."""
    run: Run | None = Field(default=None, exclude_if=not_)
    """The blueprint of the run; None: the session is no run."""
    schedule: Schedule | None = Field(default=None, exclude_if=not_)
    """The time of the start; None: at once."""


class RunClaimed(Fact):
    """A registered runner takes the run: the calls of the run go to it."""

    type: Literal["RunClaimed"] = "RunClaimed"
    runner: str
    """The runner's incarnation."""


class SessionForked(Fact):
    """A fork continues the past of another session, without its effects in flight.

    This fact is for version 1 of the fork's inbox.
    """

    type: Literal["SessionForked"] = "SessionForked"
    parent: str
    version: int
    hash: str
    agent: AgentSpec
    goal: str | None
    open: bool
    attached: bool
    note: str | None
    asked_by: str = ""
    epoch: int
    at: AwareDatetime | None = None


class SessionWaiting(Fact):
    """The session waits: there is no effect to do now."""

    type: Literal["SessionWaiting"] = "SessionWaiting"
    kind: WaitKind
    cause: Cause
    deadline_at: AwareDatetime | None = None
    effects: tuple[str, ...] = ()
    exhausted: bool = False
    """For `budget`: only a raised limit helps."""
    reserved: bool = False
    """For `breaker`: a reservation for the model call is released."""


class SessionContinued(Fact):
    """The session continues."""

    type: Literal["SessionContinued"] = "SessionContinued"
    by: WakeCode
    at: AwareDatetime | None = None
    waited: dict[str, float] = {}
    """By stream of a child whose deadline has passed: the seconds that it waited for people."""
    queued_until: AwareDatetime | None = Field(default=None, exclude_if=not_)
    """For a run: the end of its wait for a runner."""
    max_running: int = Field(default=0, exclude_if=not_)
    """For a run that waits to be admitted: the number of runs of its blueprint at a time."""


class SessionIdle(Fact):
    """The session is idle: the turn is over, and the session stays open for messages."""

    type: Literal["SessionIdle"] = "SessionIdle"
    result: str = ""
    partial: bool = False
    """Whether a tool that is not critical failed since the last idle time."""
    turns: int = 0
    """The model's replies since the session began; tokens and usd also count from then."""
    tokens: int = 0
    usd: Decimal = Decimal(0)


class LostAttempt(Part):
    """An attempt that was running when its host died."""

    effect: str
    attempt: int
    cost: Cost | None = Field(default=None, exclude_if=not_)
    """The highest possible cost of a model call, if no ledger was asked."""


class SessionTakenOver(Fact):
    """A new owner continues after the former owner died, or handed the session over."""

    type: Literal["SessionTakenOver"] = "SessionTakenOver"
    epoch: int
    lost_attempts: tuple[LostAttempt, ...] = ()
    handed_over: bool = Field(default=False, exclude_if=not_)
    """Whether the former owner lived, and gave the session up."""
    at: AwareDatetime


class SessionCompleted(Fact):
    """The session completed; final (I6)."""

    type: Literal["SessionCompleted"] = "SessionCompleted"
    result: str
    value: JsonValue = Field(default=None, exclude_if=partial(is_, None))
    """The result of a plan, if it is no text."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """The result of a plan is null, and no text."""
    partial: bool = False
    """Whether a tool that is not critical failed."""
    turns: int = 0
    """Answers of the model in this session; the sums below are of this session, too."""
    tokens: int = 0
    usd: Decimal = Decimal(0)


class SessionFailed(Fact):
    """The session failed; final (I6)."""

    type: Literal["SessionFailed"] = "SessionFailed"
    kind: str
    """The error code; `approval_expired`: nobody decided in time."""
    message: str = ""
    """The text of the vendor or of an exception."""
    approval: str = ""
    """For `approval_expired`: the approval."""
    recoverable: bool = False


class SessionStopped(Fact):
    """A person ended the session; final (I6)."""

    type: Literal["SessionStopped"] = "SessionStopped"
    by: str
    code: StopCode = "asked"
    reason: str = ""
    """The person's reason for ending it or for denying the call."""


class MessageReceived(Fact):
    """The session read a message of its inbox."""

    type: Literal["MessageReceived"] = "MessageReceived"
    inbox_version: int
    recorded_at: AwareDatetime
    """When the log recorded the message, which counts from then."""
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    late: bool = Field(default=False, exclude_if=not_)
    """Whether it is the end of a child whose call has timed out; the model gets it as a message."""


class MessageRefused(Fact):
    """The session read a message of its inbox that changes nothing."""

    type: Literal["MessageRefused"] = "MessageRefused"
    inbox_version: int
    recorded_at: AwareDatetime
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    refusal: Refusal


class ReservationClosed(Fact):
    """The ledger has settled or released the reservation of a model call."""

    type: Literal["ReservationClosed"] = "ReservationClosed"
    effect: str
    attempt: int
    outcome: Literal["settled", "estimated", "released"]
    """Settled at the reported cost, or at the whole reservation; or released."""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    shares: dict[str, float] = {}
    """For each limit, the largest spent share on the path to the root."""


class LimitRaised(Fact):
    """Limits of the session are raised from here on; None keeps a limit."""

    type: Literal["LimitRaised"] = "LimitRaised"
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_turns: int | None = None
    max_active_seconds: float | None = None
    max_wall_seconds: float | None = None


class LimitWarned(Fact):
    """A limit is nearly used up; recorded once for each limit and share."""

    type: Literal["LimitWarned"] = "LimitWarned"
    FACETS: ClassVar[tuple[str, ...]] = ("limit",)
    limit: str
    """Its name in `Limits`."""
    share: float
    """0.8: people are warned; 0.9: the agent, too."""
    used: float
    of: float
    """The limit; 1 for tokens and cost: `used` is the largest spent share up to the root."""
    note: str = ""
    """The text for the next model call."""
