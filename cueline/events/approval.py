"""The facts of one approval: stream `approval-<tenant>/<session>.<effect>.<n>`."""

from decimal import Decimal
from typing import Literal

from pydantic import AwareDatetime, JsonValue

from cueline.events.agent import Part
from cueline.events.cause import Cause
from cueline.events.fact import Fact
from cueline.events.inbox import Resolution

SupersedeCode = Literal["stop", "steer", "change"]
"""What ended the need: the session ends, a person steered it, or the tool changed."""


class Doubt(Part):
    """What is known of a call in doubt."""

    attempt: int
    runner: str
    cause: Cause
    """How it is known that nobody will report the outcome."""
    checked: bool = False
    """Its own check could not tell."""
    people_only: bool = False
    """To run it again needs a grant of the people whom the policy names."""


class ApprovalOpened(Fact):
    """A person is asked about exactly one effect."""

    type: Literal["ApprovalOpened"] = "ApprovalOpened"
    session: str
    """The session's stream, whose inbox takes the decision."""
    effect: str
    digest: str
    """Of exactly what will run: session, effect, tool, schema, arguments, workspace (I9)."""
    question: Literal["may_it_run", "did_it_happen"]
    tool: str
    arguments: dict[str, JsonValue]
    summary: str
    """For people: the tool and its arguments; a long one is cut, and says by how much."""
    preview: str = ""
    """What it would change, as a unified diff, where that could be seen;
    a warning if it can change the log."""
    unpriced: str = ""
    """Why nobody knows what it will cost, though its tool should."""
    doubt: Doubt | None = None
    """Of a call in doubt: what is known of it."""
    rule: str = ""
    """Which rules ask."""
    usd: Decimal | None = None
    """What it is estimated to cost."""
    votes: int = 1
    """So many people have to allow it."""
    may_grant: tuple[tuple[str, ...], ...] = ()
    """Who may allow it: of each group of patterns, one has to fit."""
    excluded: tuple[str, ...] = ()
    """Who may not."""
    auto_at: AwareDatetime | None = None
    """When it is granted if nobody has denied it."""
    auto_by: str = ""
    """By whom it is granted then."""
    epoch: int
    opened_at: AwareDatetime
    deadline_at: AwareDatetime


class VoteGiven(Fact):
    """A person voted."""

    type: Literal["VoteGiven"] = "VoteGiven"
    verdict: Literal["grant", "deny"]
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The arguments with which it may run, instead of those that were asked for."""
    always: tuple[str, ...] | None = None
    """What else of the tool they allow for the rest of the session: paths."""
    message: str
    """The inbox message that brought it, as `inbox-default/7f3a@5`."""
    recorded_at: AwareDatetime
    """When the log recorded the decision: that is when it counts."""
    resolution: Resolution | None = None
    """Of a call in doubt; see `DecisionGiven`."""
    result: str = ""
    """What the call gave, where they say that it happened."""


class ApprovalGranted(Fact):
    """It may run, once, until the deadline; of a call in doubt see `resolution`."""

    type: Literal["ApprovalGranted"] = "ApprovalGranted"
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The arguments with which it runs, when they were changed."""
    digest: str = ""
    """Of what runs then (I9)."""
    always: tuple[str, ...] | None = None
    resolution: Resolution | None = None
    """`happened`: it does not run again; `run_again`: it may."""
    result: str = ""
    """What the call gave, where they say that it happened."""


class ApprovalDenied(Fact):
    """It may not run."""

    type: Literal["ApprovalDenied"] = "ApprovalDenied"
    by: str
    note: str = ""
    resolution: Resolution | None = None
    """Of a call in doubt `do_not_run`."""


class ApprovalExpired(Fact):
    """Nobody decided in time; it never runs."""

    type: Literal["ApprovalExpired"] = "ApprovalExpired"
    at: AwareDatetime


class ApprovalSuperseded(Fact):
    """What ended the need came first."""

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
