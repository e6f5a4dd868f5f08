"""What anyone may tell a session: the messages of an inbox.

Nobody acquires an inbox. Each message leads to exactly one fact in the
session's stream (I7).
"""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.agent import AgentSpec, Part, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.fact import Fact
from cueline.events.number import LONGEST_SECONDS, PAYABLE

Lane = Literal["note", "steer", "followup"]
Resolution = Literal["happened", "run_again", "do_not_run"]
"""What a person says of a call in doubt."""


class ForkPoint(Part):
    """Where a fork leaves its parent."""

    stream: str
    version: int
    hash: str
    """Of the parent's event at that version, in hex."""


class StartAsked(Fact):
    """A session was asked for; always version 1 of its inbox."""

    type: Literal["StartAsked"] = "StartAsked"
    agent: AgentSpec
    goal: str | None = None
    """The first message of the user."""
    open: bool = False
    """Stays open for more messages after its goal."""
    attached: bool = False
    """Somebody watches at a terminal."""
    fork_of: ForkPoint | None = None
    note: str | None = None
    """What a fork tells the model of its workspace."""
    labels: dict[str, str] = {}
    parent: str | None = None
    """The session that it is a child of."""
    root: str | None = None
    """The topmost session of its tree; None for one without a parent."""
    depth: int = 0
    """How many sessions are above it."""
    allowances: tuple[Allowance, ...] = ()
    """The limits of those above it, the nearest first."""
    asked_by: str = ""
    """The person who wants it, where that is known."""
    asked_at: AwareDatetime
    """By the asker's own clock, for people; rules go by when the log recorded it (I14)."""


class MessageSent(Fact):
    """Somebody said something to the agent."""

    type: Literal["MessageSent"] = "MessageSent"
    lane: Lane
    text: str


class PauseAsked(Fact):
    """Start nothing new; let what is in flight finish."""

    type: Literal["PauseAsked"] = "PauseAsked"
    why: Literal["asked", "signal"] = "asked"


class ResumeAsked(Fact):
    """Go on after a pause."""

    type: Literal["ResumeAsked"] = "ResumeAsked"
    tools: tuple[ToolSpec, ...] = ()
    """The tools that have changed since, as they are now, which a person accepts."""


class StopAsked(Fact):
    """End the session; tools get 5 seconds, then are terminated, then killed."""

    type: Literal["StopAsked"] = "StopAsked"
    reason: str = ""
    """The words of the person who asked."""


class DecisionGiven(Fact):
    """A person decided on an approval."""

    type: Literal["DecisionGiven"] = "DecisionGiven"
    approval: str
    digest: str
    """Of exactly what was shown to them (I9)."""
    verdict: Literal["grant", "deny"]
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """With a grant: the arguments with which it may run, all of them."""
    always: tuple[str, ...] | None = None
    """With a grant: where the tool may be used for the rest of the session; see `StandingGrant`."""
    channel: str = ""
    """Where they were asked: `cli`, `prompt`, `api` …"""
    resolution: Resolution | None = None
    """Of a call in doubt: to grant is to say `happened` or `run_again`, to deny `do_not_run`."""
    result: str = ""
    """With `happened`: what the agent is told as the result of the call."""


_LONGEST = Field(default=None, allow_inf_nan=False, le=LONGEST_SECONDS)


class RaiseAsked(Fact):
    """Somebody raises limits; what is None stays as it is."""

    type: Literal["RaiseAsked"] = "RaiseAsked"
    max_tokens: int | None = None
    max_cost: Annotated[Decimal | None, PAYABLE] = None
    max_turns: int | None = None
    max_active_seconds: float | None = _LONGEST
    max_wall_seconds: float | None = _LONGEST


class SecretsWaived(Fact):
    """A person lets the session go on though the values of some secrets are not known.

    What has them in it is recorded as it is.
    """

    type: Literal["SecretsWaived"] = "SecretsWaived"
    names: tuple[str, ...]
    """Of the variables, as the agent names them."""
    by: str


class BudgetFreed(Fact):
    """The ledger has room again for a call that it refused; a hint."""

    type: Literal["BudgetFreed"] = "BudgetFreed"
    budget: str
    """The budget's stream."""


class ChildAsked(Fact):
    """A child of this session was asked for, in the same append."""

    type: Literal["ChildAsked"] = "ChildAsked"
    child: str
    """Its stream."""


class ChildEnded(Fact):
    """A child of this session has ended, in the same append."""

    type: Literal["ChildEnded"] = "ChildEnded"
    child: str
    """Its stream."""
    status: Literal["completed", "failed", "stopped"]
    tokens: int = 0
    """What it spent itself; its own children tell theirs to it."""
    usd: Decimal = Decimal(0)


InboxMessage = Annotated[
    MessageSent
    | PauseAsked
    | ResumeAsked
    | StopAsked
    | DecisionGiven
    | RaiseAsked
    | SecretsWaived
    | BudgetFreed
    | ChildAsked
    | ChildEnded
    | StartAsked,
    Field(discriminator="type"),
]
