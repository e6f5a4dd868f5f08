"""Facts about questions to people, and their answers."""

from decimal import Decimal
from operator import not_
from typing import Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.codes import Refusal
from cueline.events.fact import Fact, Part
from cueline.events.inbox import Resolution
from cueline.events.input_request import InputRequest
from cueline.events.session.call import Judgement

TellCode = Literal["told", "call_over", "question_over", "hook_failed"]
"""The result of a hook: people were notified, or the reason why not."""
Verdict = Literal["granted", "denied", "expired", "superseded"]


class GateAnswer(Part):
    """The approval gate's answer to a decision."""

    approval: str
    verdict: Verdict | None
    """The verdict; None while more votes are needed."""
    by: str = ""
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The edited arguments with which the call runs; None: they were not edited."""
    digest: str = ""
    """The digest of the edited call."""
    usd: Decimal | None = None
    """The estimated cost of the edited call, if the tool estimates each call."""
    always: tuple[str, ...] | None = None
    """The scope of a grant for the rest of the session."""
    valid_until: AwareDatetime | None = None
    """The expiry of a grant that was read after its deadline."""
    told: str = ""
    """The note for the agent."""
    resolution: Resolution | None = None
    """The resolution of a call in doubt."""
    result: str = ""
    """The result of the call, for `happened`; or the answer to its requests, as JSON."""
    refusal: Refusal | None = None
    """Why this decision does not count; None: it counts."""


class ApprovalRequested(Fact):
    """The session requested an approval; the gate has opened the approval's stream."""

    type: Literal["ApprovalRequested"] = "ApprovalRequested"
    effect: str
    approval: str
    digest: str
    deadline_at: AwareDatetime
    question: Literal["may_it_run", "did_it_happen", "what_to_answer"] = "may_it_run"
    requests: tuple[InputRequest, ...] = Field(default=(), exclude_if=not_)
    """For a call that asks a person: what it asks for."""
    rule: str = ""
    """The names of the rules that require the approval."""
    usd: Decimal | None = None
    votes: int = 1
    auto_at: AwareDatetime | None = None
    """The time of the automatic grant, unless the approval is denied earlier."""
    people_only: bool = False
    """Whether the approval is never granted automatically."""
    escalated: bool = False
    """Whether the approval was escalated because nobody answered in time."""
    seen: str = ""
    """The digest of the shown diff; after a change a person is asked again (I9)."""


class ApprovalResolved(Fact):
    """The gate's verdict on an approval, recorded in the session."""

    type: Literal["ApprovalResolved"] = "ApprovalResolved"
    approval: str
    verdict: Verdict
    by: str
    note: str = ""
    edit: dict[str, JsonValue] | None = None
    """The edited arguments with which the call runs; None: they were not edited."""
    digest: str = ""
    """The digest of the edited call."""
    usd: Decimal | None = None
    """The estimated cost of the edited call, if the tool estimates each call."""
    always: tuple[str, ...] | None = None
    """The scope of a grant for the rest of the session."""
    valid_until: AwareDatetime | None = None
    """The expiry of a grant that was read after its deadline; None: the deadline (I9)."""
    resolution: Resolution | None = None
    """For a call in doubt: `happened`, `run_again`, which is a new grant, or `do_not_run`."""
    result: str = ""
    """The result of the call, for `happened`; or the answer to its requests, as JSON."""
    judged: Judgement | None = None
    """The judgement of the edited call."""


class PeopleNotified(Fact):
    """A hook of the policy ran, to notify people of a call."""

    type: Literal["PeopleNotified"] = "PeopleNotified"
    effect: str
    approval: str = ""
    """The approval; empty if the hook is not about an approval."""
    hook: int
    """The place of the hook among the policy's hooks."""
    code: TellCode = "told"
    problem: str = ""
    """The error text of a hook with the code `hook_failed`; failed hooks are not retried."""
    at: AwareDatetime
