"""What people were asked, and what they answered."""

from decimal import Decimal
from typing import Literal

from pydantic import AwareDatetime, JsonValue

from cueline.events.agent import Part
from cueline.events.fact import Fact
from cueline.events.inbox import Resolution
from cueline.events.refusal import Refusal
from cueline.events.session.judgement import Judgement

TellCode = Literal["told", "call_over", "question_over", "hook_failed"]
"""Whether a hook told people, and why not."""
Verdict = Literal["granted", "denied", "expired", "superseded"]


class GateAnswer(Part):
    """What the approval gate made of a decision."""

    approval: str
    verdict: Verdict | None
    """None while it takes more votes."""
    by: str = ""
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The arguments with which it may run, when they were changed."""
    digest: str = ""
    """Of what runs then."""
    usd: Decimal | None = None
    """What it is estimated to cost then, where the tool estimates each call."""
    always: tuple[str, ...] | None = None
    """Where the tool may be used for the rest of the session."""
    valid_until: AwareDatetime | None = None
    """Until when a grant counts that was read after its deadline."""
    told: str = ""
    """What the agent is told of the answer."""
    resolution: Resolution | None = None
    """Of a call in doubt."""
    result: str = ""
    """What the call gave, where somebody says that it happened."""
    refusal: Refusal | None = None
    """Why this decision does not count; None: it does."""


class ApprovalRequested(Fact):
    """A person is asked; the gate has opened the approval's stream."""

    type: Literal["ApprovalRequested"] = "ApprovalRequested"
    effect: str
    approval: str
    digest: str
    deadline_at: AwareDatetime
    question: Literal["may_it_run", "did_it_happen"] = "may_it_run"
    rule: str = ""
    """Which rules ask."""
    usd: Decimal | None = None
    votes: int = 1
    auto_at: AwareDatetime | None = None
    """When it is granted if nobody has denied it."""
    people_only: bool = False
    """It is never granted automatically."""
    escalated: bool = False
    """Others are asked, for nobody answered in time."""
    seen: str = ""
    """Digest of the difference that was shown; with another one it is asked again (I9)."""


class ApprovalResolved(Fact):
    """The gate's verdict on an approval, as the session learned it."""

    type: Literal["ApprovalResolved"] = "ApprovalResolved"
    approval: str
    verdict: Verdict
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The arguments with which the call runs, when they were changed."""
    digest: str = ""
    """Of what runs then."""
    usd: Decimal | None = None
    """What it is estimated to cost then, where the tool estimates each call."""
    always: tuple[str, ...] | None = None
    """Where the tool may be used for the rest of the session."""
    valid_until: AwareDatetime | None = None
    """Until when a grant counts that was read after its deadline; None: until that (I9)."""
    resolution: Resolution | None = None
    """Of a call in doubt: `happened`, `run_again`, which is a new grant, or `do_not_run`."""
    result: str = ""
    """What the call gave, where somebody says that it happened."""
    judged: Judgement | None = None
    """What the rules said of the call as it was edited."""


class PeopleNotified(Fact):
    """A hook of the policy was run, so that people learn of a call."""

    type: Literal["PeopleNotified"] = "PeopleNotified"
    effect: str
    approval: str = ""
    """The question, where it is about one."""
    hook: int
    """Its place among the policy's hooks."""
    code: TellCode = "told"
    problem: str = ""
    """Of `hook_failed`: the words of the hook; it is not tried again."""
    at: AwareDatetime
