"""How a session begins, rests, goes on and ends."""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import AwareDatetime, Field

from cueline.events.agent import AgentSpec, Part
from cueline.events.budget import Allowance
from cueline.events.cause import Cause
from cueline.events.fact import Fact
from cueline.events.message import Cost

WaitKind = Literal[
    "operator", "budget", "approval", "child", "sandbox", "runner", "breaker", "retry"
]
"""Why a session waits, the strongest first."""
StopCode = Literal["asked", "call_denied"]
"""Why a session was ended: a person asked for it, or denied a call."""
WakeCode = Literal["deadline", "message", "replay", "runner", "breaker", "work"]
"""What has a session go on."""


class SessionStarted(Fact):
    """The first owner took the session up; stands for version 1 of its inbox."""

    type: Literal["SessionStarted"] = "SessionStarted"
    agent: AgentSpec
    goal: str | None
    open: bool
    attached: bool
    labels: dict[str, str] = {}
    asked_by: str = ""
    """The person who wanted it, where that is known."""
    epoch: int
    at: AwareDatetime | None = None
    """When; the wall clock of its limits counts from it."""
    parent: str | None = None
    """The session that it is a child of."""
    root: str | None = None
    """The topmost session of its tree; None for one without a parent."""
    depth: int = 0
    """How many sessions are above it."""
    allowances: tuple[Allowance, ...] = ()
    """The limits of those above it, the nearest first."""


class SessionForked(Fact):
    """A new session goes on from another's past; nothing in flight crosses it.

    Stands for version 1 of the new session's inbox.
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
    """Nothing is in hand; the session rests."""

    type: Literal["SessionWaiting"] = "SessionWaiting"
    kind: WaitKind
    cause: Cause
    deadline_at: AwareDatetime | None = None
    effects: tuple[str, ...] = ()
    exhausted: bool = False
    """Of `budget`: what was spent leaves no room, and only a raise makes some."""
    reserved: bool = False
    """Of `breaker`: room may be held for the model call already; it is released."""


class SessionContinued(Fact):
    """The session goes on."""

    type: Literal["SessionContinued"] = "SessionContinued"
    by: WakeCode
    at: AwareDatetime | None = None


class SessionIdle(Fact):
    """The turn is over, and the session stays open for more messages."""

    type: Literal["SessionIdle"] = "SessionIdle"
    result: str = ""
    partial: bool = False
    """A tool that is not critical failed on the way, since the session was idle last."""
    turns: int = 0
    """Answers of the model since the session began; the sums below are of the same time."""
    tokens: int = 0
    usd: Decimal = Decimal(0)


class LostAttempt(Part):
    """An attempt that was in flight when its host died."""

    effect: str
    attempt: int
    cost: Cost | None = Field(default=None, exclude_if=not_)
    """The most that a model call may have cost, where no ledger was asked."""


class SessionTakenOver(Fact):
    """A new owner goes on after the former one died in the middle."""

    type: Literal["SessionTakenOver"] = "SessionTakenOver"
    epoch: int
    lost_attempts: tuple[LostAttempt, ...] = ()
    at: AwareDatetime


class SessionCompleted(Fact):
    """The agent reached its goal; final (I6)."""

    type: Literal["SessionCompleted"] = "SessionCompleted"
    result: str
    partial: bool = False
    """A tool that is not critical failed on the way."""
    turns: int = 0
    """Answers of the model in this session; the sums below are of this session, too."""
    tokens: int = 0
    usd: Decimal = Decimal(0)


class SessionFailed(Fact):
    """The session cannot go on; final (I6)."""

    type: Literal["SessionFailed"] = "SessionFailed"
    kind: str
    """Which kind of failure; `approval_expired`: nobody decided in time."""
    message: str = ""
    """The words of the vendor or of an exception."""
    approval: str = ""
    """Of `approval_expired`."""
    recoverable: bool = False


class SessionStopped(Fact):
    """Somebody ended the session; final (I6)."""

    type: Literal["SessionStopped"] = "SessionStopped"
    by: str
    code: StopCode = "asked"
    reason: str = ""
    """The words of the person: why they ended it, or denied the call."""
