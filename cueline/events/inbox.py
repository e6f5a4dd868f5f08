"""The messages of an inbox, which anyone may send to a session.

An inbox has no owner. Each message leads to exactly one fact in the session's stream (I7).
"""

from decimal import Decimal
from functools import partial
from operator import is_, not_
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.agent import AgentSpec, ModelChoice, ToolSpec
from cueline.events.budget import Allowance
from cueline.events.fact import LONGEST_SECONDS, PAYABLE, Fact, Part
from cueline.events.message import Attachment
from cueline.events.start import ChildCall, Mode, Run, Schedule
from cueline.events.status import Resolution as Resolution  # noqa: PLC0414 - its word

Lane = Literal["note", "steer", "followup"]
SET_BY_CUELINE: Final = "set by cueline"
"""The mark of a message's fields that the sender may not set."""


class ForkPoint(Part):
    """The event of the parent after which a fork begins."""

    stream: str
    version: int
    hash: str
    """The hash of the parent's event at that version, in hex."""


class StartAsked(Fact):
    """The start request of a session; always version 1 of its inbox."""

    type: Literal["StartAsked"] = "StartAsked"
    agent: AgentSpec
    goal: str | None = None
    """The first message of the user."""
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)
    """The attachments of the first message."""
    open: bool = False
    """Whether the session stays open for more messages after its goal."""
    attached: bool = False
    """Whether a person watches at a terminal."""
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The parameters, by the agent's `parameters_schema`."""
    fork_of: ForkPoint | None = None
    note: str | None = None
    """The text for the model about a fork's workspace."""
    labels: dict[str, str] = {}
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
    asked_by: str = ""
    """The person who starts the session; empty: unknown."""
    traceparent: str = Field(default="", exclude_if=not_)
    """The trace and span of the program that started the tree of sessions; empty: unknown."""
    asked_at: AwareDatetime
    """The sender's own clock, for people; rules use the log's recording time (I14)."""


class MessageSent(Fact):
    """A person or program sent a message to the agent."""

    type: Literal["MessageSent"] = "MessageSent"
    lane: Lane = "note"
    """When the model gets it: a `note` with the next model call, a `steer` instead of the rest of
    the turn, a `followup` when the session would be done."""
    text: str
    """The text, for the model."""
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)
    """The images and files of the message."""
    turn: Annotated[int, SET_BY_CUELINE] = Field(default=0, exclude_if=not_)
    """The first turn whose request may include the message; a rerun sends messages ahead."""
    name: str = Field(default="", exclude_if=not_)
    """The name for which a step of a plan waits; only a message with a name has a value."""
    value: Annotated[JsonValue, SET_BY_CUELINE] = Field(default=None, exclude_if=partial(is_, None))
    """The value of a message with a name: the text as JSON, or unchanged if it is not JSON."""


class PauseAsked(Fact):
    """A person or program requested a pause: running effects finish, and no effect starts."""

    type: Literal["PauseAsked"] = "PauseAsked"
    why: Annotated[Literal["asked", "signal"], SET_BY_CUELINE] = "asked"


class ResumeAsked(Fact):
    """A person or program requested that a paused session continues."""

    type: Literal["ResumeAsked"] = "ResumeAsked"
    tools: Annotated[tuple[ToolSpec, ...], SET_BY_CUELINE] = ()
    """The changed tools that a person accepts, in their new form."""


class StopAsked(Fact):
    """A person or program requested the end of the session; tools get 5 seconds to finish."""

    type: Literal["StopAsked"] = "StopAsked"
    reason: str = ""
    """The person's text."""


class DecisionGiven(Fact):
    """A person decided on an approval."""

    type: Literal["DecisionGiven"] = "DecisionGiven"
    approval: str
    """The id of the question."""
    digest: str = ""
    """The digest of the shown call (I9); a request without a digest is about the open question."""
    verdict: Literal["grant", "deny"]
    """Whether the call may run."""
    by: str = ""
    """The person who decided; a request without a person is by the user of the process."""
    note: str = ""
    """The person's text, for the agent."""
    edit: dict[str, JsonValue] | None = None
    """All arguments of the call, as a person edited them in a grant."""
    always: tuple[str, ...] | None = None
    """The scope of a grant for the rest of the session; see `StandingGrant`."""
    channel: Annotated[str, SET_BY_CUELINE] = ""
    """The place of the answer: `cli`, `prompt`, `api` …"""
    resolution: Resolution | None = None
    """For a call in doubt: `happened` or `run_again` with a grant, `do_not_run` with a denial."""
    result: str = ""
    """The result of the call for the model, if the resolution is `happened`.

    For a call that asks a person: the answer to each of its requests by key, as a JSON object.
    """


_LONGEST = Field(default=None, allow_inf_nan=False, le=LONGEST_SECONDS)


class RaiseAsked(Fact):
    """A person or program raised limits; None keeps a limit."""

    type: Literal["RaiseAsked"] = "RaiseAsked"
    max_tokens: int | None = None
    """The new limit of input and output tokens of the session and its descendants."""
    max_cost: Annotated[Decimal | None, PAYABLE] = None
    """The new cost limit of the session and its descendants, in US dollars."""
    max_turns: int | None = None
    """The new limit of model calls after a message."""
    max_active_seconds: float | None = _LONGEST
    """The new limit of the sum of the durations of model and tool calls."""
    max_wall_seconds: float | None = _LONGEST
    """The new limit of the time since the session's start."""


class ModelChangeAsked(Fact):
    """A person or program chose another model for the agent's next requests."""

    type: Literal["ModelChangeAsked"] = "ModelChangeAsked"
    model: ModelChoice
    """The model; without a provider: `PROVIDER/NAME`, or a NAME of the agent's provider."""


class SecretsWaived(Fact):
    """A person allowed the session to continue without the values of some secrets.

    Texts with the values of these secrets are recorded unchanged.
    """

    type: Literal["SecretsWaived"] = "SecretsWaived"
    names: tuple[str, ...]
    """The names of the variables, as in the agent's `secrets`."""
    by: str


class BudgetFreed(Fact):
    """The ledger may have budget for a refused call; a hint."""

    type: Literal["BudgetFreed"] = "BudgetFreed"
    budget: str
    """The budget's stream."""


class SlotOffered(Fact):
    """The session has the slot of a sandbox for which it waited, in the same append."""

    type: Literal["SlotOffered"] = "SlotOffered"
    pool: str


class ChildAsked(Fact):
    """A program started a child of this session, in the same append."""

    type: Literal["ChildAsked"] = "ChildAsked"
    child: str
    """The child's stream."""


class ChildEnded(Fact):
    """A child of this session has ended, in the same append."""

    type: Literal["ChildEnded"] = "ChildEnded"
    child: str
    """The child's stream."""
    status: Literal["completed", "failed", "stopped"]
    tokens: int = 0
    """The cost of the child itself, without its own children."""
    usd: Decimal = Decimal(0)
    effect: str = ""
    """The call that started the child; empty: a program started it."""
    attempt: int = 1
    """The number of the call's attempt, from 1."""
    mode: Mode = "sync"
    text: str = ""
    """The last reply of the child."""
    value: JsonValue = None
    """The last reply, read as the agent's declared output."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """Whether the value is null instead of a text."""
    partial: bool = False
    """Whether a tool that is not critical failed in the child."""
    error_code: str = ""
    """Why the child did not complete, or why the text does not fit the declared output."""
    error: str = ""
    side_effects_possible: bool = False
    """Whether a tool that is not read-only started in the child or in one of its descendants."""
    original_parameters: dict[str, JsonValue] = {}
    """The arguments of the call."""


class ChildPaused(Fact):
    """A child whose call does not wait for it was paused, or continues, in the same append."""

    type: Literal["ChildPaused"] = "ChildPaused"
    child: str
    """The child's stream."""
    reason: str = Field(default="", exclude_if=not_)
    """Why the child is paused; empty: it continues."""


class RunAdmitted(Fact):
    """A run may start: fewer older runs of its blueprint are unfinished than the limit."""

    type: Literal["RunAdmitted"] = "RunAdmitted"


class RunnerGone(Fact):
    """The runner that claimed this run was removed, in the same append."""

    type: Literal["RunnerGone"] = "RunnerGone"
    runner: str
    """The runner's incarnation."""
    reason: str
    graceful: bool = Field(default=False, exclude_if=not_)
    """Whether the runner left by itself or was retired."""


InboxMessage = Annotated[
    MessageSent
    | PauseAsked
    | ResumeAsked
    | StopAsked
    | DecisionGiven
    | RaiseAsked
    | ModelChangeAsked
    | SecretsWaived
    | BudgetFreed
    | ChildAsked
    | ChildEnded
    | ChildPaused
    | RunAdmitted
    | SlotOffered
    | RunnerGone
    | StartAsked,
    Field(discriminator="type"),
]
