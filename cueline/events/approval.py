"""The facts of one approval: stream `approval-<tenant>/<session>.<effect>.<n>`."""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.codes import Cause
from cueline.events.fact import Fact, Part
from cueline.events.inbox import Resolution
from cueline.events.input_request import InputRequest

SupersedeCode = Literal["stop", "steer", "change"]
"""Why the approval is not needed: the session ends, a person steered it, or the tool changed."""


class Doubt(Part):
    """The evidence about a call in doubt."""

    attempt: int
    runner: str
    cause: Cause
    """The evidence that nobody will report the outcome."""
    checked: bool = False
    """Whether the tool's `reconcile` function ran, and could not find the outcome."""
    people_only: bool = False
    """Whether running the call again needs a grant by the policy's approvers."""


class ApprovalOpened(Fact):
    """The gate asked people to approve exactly one effect."""

    type: Literal["ApprovalOpened"] = "ApprovalOpened"
    session: str
    """The session's stream; its inbox takes the decision."""
    effect: str
    digest: str
    """The digest of the call: session, effect, tool, schema, arguments, workspace (I9)."""
    question: Literal["may_it_run", "did_it_happen", "what_to_answer"]
    tool: str
    arguments: dict[str, JsonValue]
    summary: str
    """The tool and its arguments, cut if long, for people."""
    preview: str = ""
    """The previewed change as a unified diff, or a warning that the call can change the log."""
    unpriced: str = ""
    """Why the cost is unknown although the tool should estimate it."""
    doubt: Doubt | None = None
    """For a call in doubt: the evidence."""
    requests: tuple[InputRequest, ...] = Field(default=(), exclude_if=not_)
    """For a call that asks a person: what it asks for."""
    rule: str = ""
    """The names of the rules that require the approval."""
    usd: Decimal | None = None
    """The estimated cost of the call."""
    votes: int = 1
    """The number of people who have to grant the call."""
    may_grant: tuple[tuple[str, ...], ...] = ()
    """Patterns of the people who may grant the call: one pattern of each group has to match."""
    excluded: tuple[str, ...] = ()
    """The people who may not grant the call."""
    auto_at: AwareDatetime | None = None
    """The time of the automatic grant, unless the approval is denied earlier."""
    auto_by: str = ""
    """The actor of the automatic grant."""
    epoch: int
    opened_at: AwareDatetime
    deadline_at: AwareDatetime


class VoteGiven(Fact):
    """A person granted or denied an approval."""

    type: Literal["VoteGiven"] = "VoteGiven"
    verdict: Literal["grant", "deny"]
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The edited arguments."""
    always: tuple[str, ...] | None = None
    """The scope of a grant for the rest of the session."""
    message: str
    """The inbox message of the vote, as `inbox-default/7f3a@5`."""
    recorded_at: AwareDatetime
    """The time at which the log recorded the decision; the decision takes effect then."""
    resolution: Resolution | None = None
    """The resolution of a call in doubt; see `DecisionGiven`."""
    result: str = ""
    """The result of the call, for `happened`; or the answer to its requests, as JSON."""


class ApprovalGranted(Fact):
    """The call may run once, until the deadline; for a call in doubt see `resolution`."""

    type: Literal["ApprovalGranted"] = "ApprovalGranted"
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The edited arguments with which the call runs; None: they were not edited."""
    digest: str = ""
    """The digest of the exact call (I9)."""
    always: tuple[str, ...] | None = None
    resolution: Resolution | None = None
    """For a call in doubt: `happened` (the call does not run again) or `run_again`."""
    result: str = ""
    """The result of the call, for `happened`; or the answer to its requests, as JSON."""


class ApprovalDenied(Fact):
    """The call may not run."""

    type: Literal["ApprovalDenied"] = "ApprovalDenied"
    by: str
    note: str = ""
    resolution: Resolution | None = None
    """For a call in doubt: `do_not_run`."""


class ApprovalExpired(Fact):
    """Nobody decided in time; the call never runs."""

    type: Literal["ApprovalExpired"] = "ApprovalExpired"
    at: AwareDatetime


class ApprovalSuperseded(Fact):
    """The approval is no longer needed."""

    type: Literal["ApprovalSuperseded"] = "ApprovalSuperseded"
    reason: SupersedeCode


ApprovalEvent = (
    ApprovalOpened
    | VoteGiven
    | ApprovalGranted
    | ApprovalDenied
    | ApprovalExpired
    | ApprovalSuperseded
)
