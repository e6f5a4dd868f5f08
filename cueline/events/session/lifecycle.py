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
    "task",
    "sandbox",
    "runner",
    "breaker",
    "retry",
]
"""Why a session waits, strongest first."""
StopCode = Literal["asked", "call_denied"]
"""Why a session was ended: a person requested the end, or denied a call."""
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
    """The person who started the session; empty: unknown."""
    epoch: int
    at: AwareDatetime | None = None
    """The start time; wall time counts from it."""
    parent: str | None = None
    """The parent session."""
    root: str | None = None
    """The topmost session of the tree; None for a session without a parent."""
    depth: int = 0
    """The number of the session's ancestors."""
    allowances: tuple[Allowance, ...] = ()
    """The limits of the session's ancestors, nearest first."""
    call: ChildCall | None = Field(default=None, exclude_if=not_)
    """The parent's call that started the session; None: a person or program started it."""
    run: Run | None = Field(default=None, exclude_if=not_)
    """The blueprint of the run; None: the session is no run."""
    schedule: Schedule | None = Field(default=None, exclude_if=not_)
    """The time of the start; None: at once."""
    traceparent: str = Field(default="", exclude_if=not_)
    """The trace and span of the program that started the tree of sessions; empty: unknown."""


class RunClaimed(Fact):
    """A registered runner claimed the run, and gets the run's calls."""

    type: Literal["RunClaimed"] = "RunClaimed"
    runner: str
    """The runner's incarnation."""


class SessionForked(Fact):
    """A fork continues the history of another session, without the effects in flight.

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
    """The session waits, because no effect is due."""

    type: Literal["SessionWaiting"] = "SessionWaiting"
    kind: WaitKind
    cause: Cause
    deadline_at: AwareDatetime | None = None
    effects: tuple[str, ...] = ()
    exhausted: bool = False
    """Whether only a raised limit ends a wait for budget."""
    reserved: bool = False
    """Whether a wait for a breaker releases the reservation of the model call."""


class SessionContinued(Fact):
    """The session continues."""

    type: Literal["SessionContinued"] = "SessionContinued"
    by: WakeCode
    at: AwareDatetime | None = None
    waited: dict[str, float] = {}
    """The seconds that each child with a passed deadline waited for people, by stream."""
    queued_until: AwareDatetime | None = Field(default=None, exclude_if=not_)
    """The end of a run's wait for a runner."""
    max_running: int = Field(default=0, exclude_if=not_)
    """The most runs of the blueprint at a time, for a run that waits to be admitted."""


class SandboxAttached(Fact):
    """The session's sandbox is started, for its next calls."""

    type: Literal["SandboxAttached"] = "SandboxAttached"
    number: int
    """The number of the session's sandbox, from 1: a fresh one has the next number."""
    place: str
    """The back-end's name of the sandbox."""
    lost: str = Field(default="", exclude_if=not_)
    """Why the former sandbox is gone, with all its files."""


class SessionIdle(Fact):
    """The session is idle: the turn is over, and the session stays open for messages."""

    type: Literal["SessionIdle"] = "SessionIdle"
    result: str = ""
    partial: bool = False
    """Whether a tool that is not critical failed since the last idle time."""
    turns: int = 0
    """The number of model replies since the session's start; tokens and usd count from then."""
    tokens: int = 0
    usd: Decimal = Decimal(0)


class LostAttempt(Part):
    """An attempt that was running when its host died."""

    effect: str
    attempt: int
    cost: Cost | None = Field(default=None, exclude_if=not_)
    """The highest possible cost of a model call without a reservation in the ledger."""


class SessionTakenOver(Fact):
    """A new owner continues after the former owner died, or handed the session over."""

    type: Literal["SessionTakenOver"] = "SessionTakenOver"
    epoch: int
    lost_attempts: tuple[LostAttempt, ...] = ()
    handed_over: bool = Field(default=False, exclude_if=not_)
    """Whether the former owner was alive and handed the session over."""
    at: AwareDatetime


class SessionCompleted(Fact):
    """The session completed; final (I6)."""

    type: Literal["SessionCompleted"] = "SessionCompleted"
    result: str
    value: JsonValue = Field(default=None, exclude_if=partial(is_, None))
    """The result of a plan, if it is not a text."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """Whether the result of a plan is null instead of a text."""
    partial: bool = False
    """Whether a tool that is not critical failed."""
    turns: int = 0
    """The number of model replies in this session; the sums below are also of this session."""
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
    """The expired approval, if the error code is `approval_expired`."""
    recoverable: bool = False


class SessionStopped(Fact):
    """A person ended the session; final (I6)."""

    type: Literal["SessionStopped"] = "SessionStopped"
    by: str
    code: StopCode = "asked"
    reason: str = ""
    """The person's reason for the end of the session or for the denial of a call."""


class MessageReceived(Fact):
    """The session read a message of its inbox."""

    type: Literal["MessageReceived"] = "MessageReceived"
    inbox_version: int
    recorded_at: AwareDatetime
    """The time at which the log recorded the message; the message takes effect then."""
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    late: bool = Field(default=False, exclude_if=not_)
    """Whether the message reports a child's end after the call timed out; the model gets it."""


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
    """How it was closed: settled at the reported cost or the full reservation, or released."""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    shares: dict[str, float] = {}
    """For each limit, the largest spent share on the path to the root."""


class LimitRaised(Fact):
    """Limits of the session were raised; None keeps a limit."""

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
    """The name of the limit in `Limits`."""
    share: float
    """The used share: at 0.8 people are warned, at 0.9 the agent also."""
    used: float
    of: float
    """The limit; 1 for tokens and cost, whose `used` is the largest spent share up to the root."""
    note: str = ""
    """The text for the next model call."""
