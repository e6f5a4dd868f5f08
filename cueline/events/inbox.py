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

Lane = Literal["note", "steer", "followup"]
Resolution = Literal["happened", "run_again", "do_not_run"]
"""A person's resolution of a call in doubt."""
SET_BY_CUELINE: Final = "set by cueline"
"""Marks the fields of a message that its sender may not set."""


class ForkPoint(Part):
    """The place at which a fork leaves its parent."""

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
    asked_by: str = ""
    """The person who starts it, if known."""
    asked_at: AwareDatetime
    """The sender's own clock, for people; rules use the log's recording time (I14)."""


class MessageSent(Fact):
    """A message to the agent."""

    type: Literal["MessageSent"] = "MessageSent"
    lane: Lane = "note"
    """When the model gets it: a `note` with the next model call, a `steer` instead of the rest of
    the turn, a `followup` when the session would be done."""
    text: str
    """The text, for the model."""
    attachments: tuple[Attachment, ...] = Field(default=(), exclude_if=not_)
    """The images and files of the message."""
    turn: Annotated[int, SET_BY_CUELINE] = Field(default=0, exclude_if=not_)
    """The first turn whose request may include it; a rerun sends messages ahead."""
    name: str = Field(default="", exclude_if=not_)
    """The name of a message for which a step of a plan waits; such a message has a value."""
    value: Annotated[JsonValue, SET_BY_CUELINE] = Field(default=None, exclude_if=partial(is_, None))
    """The value of a message with a name: its text, read as JSON if it is JSON."""


class PauseAsked(Fact):
    """Start nothing new; let running effects finish."""

    type: Literal["PauseAsked"] = "PauseAsked"
    why: Annotated[Literal["asked", "signal"], SET_BY_CUELINE] = "asked"


class ResumeAsked(Fact):
    """Continue after a pause."""

    type: Literal["ResumeAsked"] = "ResumeAsked"
    tools: Annotated[tuple[ToolSpec, ...], SET_BY_CUELINE] = ()
    """The changed tools, in their new form, that a person accepts."""


class StopAsked(Fact):
    """End the session; tools get 5 seconds, then are terminated, then killed."""

    type: Literal["StopAsked"] = "StopAsked"
    reason: str = ""
    """The person's text."""


class DecisionGiven(Fact):
    """A person decided on an approval."""

    type: Literal["DecisionGiven"] = "DecisionGiven"
    approval: str
    """The id of the question."""
    digest: str = ""
    """The digest of the shown call (I9); a wish without a digest is about the open question."""
    verdict: Literal["grant", "deny"]
    """Whether the call may run."""
    by: str = ""
    """The person; a wish without a person is by the user of the process."""
    note: str = ""
    """The person's text, for the agent."""
    edit: dict[str, JsonValue] | None = None
    """With a grant: all the edited arguments."""
    always: tuple[str, ...] | None = None
    """With a grant: its scope for the rest of the session; see `StandingGrant`."""
    channel: Annotated[str, SET_BY_CUELINE] = ""
    """The place of the answer: `cli`, `prompt`, `api` …"""
    resolution: Resolution | None = None
    """For a call in doubt: `happened` or `run_again` with a grant, `do_not_run` with a denial."""
    result: str = ""
    """With `happened`: the result of the call for the model."""


_LONGEST = Field(default=None, allow_inf_nan=False, le=LONGEST_SECONDS)


class RaiseAsked(Fact):
    """A person or program raises limits; None keeps a limit."""

    type: Literal["RaiseAsked"] = "RaiseAsked"
    max_tokens: int | None = None
    """Input and output tokens of the session and its descendants."""
    max_cost: Annotated[Decimal | None, PAYABLE] = None
    """US dollars of the session and its descendants."""
    max_turns: int | None = None
    """Model calls since the last message."""
    max_active_seconds: float | None = _LONGEST
    """Time at work."""
    max_wall_seconds: float | None = _LONGEST
    """Time since the start."""


class ModelChangeAsked(Fact):
    """The agent gets another model, from its next request on."""

    type: Literal["ModelChangeAsked"] = "ModelChangeAsked"
    model: ModelChoice
    """A wish without a provider names `PROVIDER/NAME`, or a NAME of the agent's provider."""


class SecretsWaived(Fact):
    """A person lets the session continue without the values of some secrets.

    Texts with these values are recorded unchanged.
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
    """The call that started it; empty: a program did."""
    attempt: int = 1
    """The number of the call's attempt, from 1."""
    mode: Mode = "sync"
    text: str = ""
    """The last reply of the child."""
    value: JsonValue = None
    """The last reply, read as the agent's declared output."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """The value is null, and no text."""
    partial: bool = False
    """A tool that is not critical failed in the child."""
    error_code: str = ""
    """Why the child did not complete, or why the text does not fit the declared output."""
    error: str = ""
    side_effects_possible: bool = False
    """A tool that is not read-only was started in the child or below it."""
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
    """The run is admitted: fewer older runs of its blueprint are unfinished than the limit."""

    type: Literal["RunAdmitted"] = "RunAdmitted"


class RunnerGone(Fact):
    """The runner that claimed this run was removed, in the same append."""

    type: Literal["RunnerGone"] = "RunnerGone"
    runner: str
    """The runner's incarnation."""
    reason: str
    graceful: bool = Field(default=False, exclude_if=not_)
    """The runner left by itself, or was retired."""


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
    | RunnerGone
    | StartAsked,
    Field(discriminator="type"),
]
