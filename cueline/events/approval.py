"""The facts of one approval: stream `approval-<tenant>/<session>.<effect>.<n>`."""

from typing import Literal

from pydantic import AwareDatetime, JsonValue

from cueline.events.fact import Fact


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
    """For people: what it does, in a line or a few."""
    rationale: str = ""
    rule: str = ""
    epoch: int
    opened_at: AwareDatetime
    deadline_at: AwareDatetime


class VoteGiven(Fact):
    """A person voted."""

    type: Literal["VoteGiven"] = "VoteGiven"
    verdict: Literal["grant", "deny"]
    by: str
    note: str = ""
    message: str
    """The inbox message that brought it, as `inbox-default/7f3a@5`."""
    recorded_at: AwareDatetime
    """When the log recorded the decision: that is when it counts."""


class ApprovalGranted(Fact):
    """It may run, once, until the deadline."""

    type: Literal["ApprovalGranted"] = "ApprovalGranted"
    by: str
    note: str = ""


class ApprovalDenied(Fact):
    """It may not run."""

    type: Literal["ApprovalDenied"] = "ApprovalDenied"
    by: str
    note: str = ""


class ApprovalExpired(Fact):
    """Nobody decided in time; it never runs."""

    type: Literal["ApprovalExpired"] = "ApprovalExpired"
    at: AwareDatetime


class ApprovalSuperseded(Fact):
    """What ended the need came first."""

    type: Literal["ApprovalSuperseded"] = "ApprovalSuperseded"
    reason: str


ApprovalEvent = (
    ApprovalOpened
    | VoteGiven
    | ApprovalGranted
    | ApprovalDenied
    | ApprovalExpired
    | ApprovalSuperseded
)
