"""Facts of a tool call."""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from operator import is_, not_
from typing import ClassVar, Final, Literal

from pydantic import AwareDatetime, Field, JsonValue

from cueline.events.agent import Answer
from cueline.events.agent_parts import StepStatus
from cueline.events.codes import Cause
from cueline.events.fact import Fact, Part
from cueline.events.input_request import InputRequest
from cueline.events.message import ToolCall
from cueline.events.start import Mode

Demand = tuple[int, tuple[tuple[str, ...], ...], bool]
"""The people who have to grant a call: number, name patterns, and whether the requester may."""


class Judgement(Part):
    """The policy's judgement of a call, and the rules that decided."""

    answer: Answer
    rule: str
    """The names of the rules that decided."""
    digest: str = Field(default="", exclude_if=not_)
    """The digest of the exact call (I9)."""
    problem: str = Field(default="", exclude_if=not_)
    """Why the call cannot run: the text for the model instead of a result."""
    usd: Decimal | None = Field(default=None, exclude_if=lambda usd: usd is None)
    """The estimated cost of the call."""
    unpriced: str = Field(default="", exclude_if=not_)
    """Why the cost is unknown although the tool should estimate it."""
    votes: int = Field(default=1, exclude_if=lambda votes: votes == 1)
    may_grant: tuple[tuple[str, ...], ...] = Field(default=(), exclude_if=not_)
    exclude_requester: bool = Field(default=False, exclude_if=not_)

    @property
    def people_only(self) -> bool:
        """Whether the call needs named approvers or several people; then no grant is automatic."""
        return self.votes > 1 or bool(self.may_grant) or self.exclude_requester

    @property
    def demand(self) -> Demand:
        """The people who have to grant the call."""
        return self.votes, self.may_grant, self.exclude_requester


UNJUDGED: Final = Judgement(answer="ask", rule="")
"""The judgement of a call that no policy has judged; the call needs an approval."""


class StepEnded(Part):
    """A step of a plan ended without a call."""

    step: str
    status: StepStatus
    error_code: str = Field(default="", exclude_if=not_)
    """Why the step was skipped or failed."""
    error: str = Field(default="", exclude_if=not_)


class CallsAdded(Fact):
    """The plan continues: steps that can begin now, and steps that end without a call."""

    type: Literal["CallsAdded"] = "CallsAdded"
    calls: dict[str, ToolCall] = Field(default={}, exclude_if=not_)
    """The calls by effect; the id of a call is its step's name, for an item `<step>[<index>]`."""
    judged: dict[str, Judgement] = Field(default={}, exclude_if=not_)
    """The judgement of each call, by effect."""
    items: dict[str, int] = Field(default={}, exclude_if=not_)
    """The number of items of `for_each`, by step."""
    ended: tuple[StepEnded, ...] = Field(default=(), exclude_if=not_)


class MessageAwaited(Fact):
    """A step of a plan began to wait for a message."""

    type: Literal["MessageAwaited"] = "MessageAwaited"
    effect: str
    attempt: int = 1
    name: str
    """The message's name."""
    deadline_at: AwareDatetime
    """The deadline; without the message, the step fails then."""


class ToolStarted(Fact):
    """A call is sent to a runner; its outcome is not known yet."""

    type: Literal["ToolStarted"] = "ToolStarted"
    FACETS: ClassVar[tuple[str, ...]] = ("tool",)
    effect: str
    attempt: int
    tool: str
    runner: str
    """The incarnation of the runner, which alone may get the call."""
    epoch: int
    rule: str
    """The rule or grant that allows the call."""
    usd: Decimal | None = None
    """The estimated cost of the call."""
    notify: bool = False
    """Whether people are notified of the call."""


class CallDelegated(Fact):
    """A call started a child session, in the same append as the child's start request."""

    type: Literal["CallDelegated"] = "CallDelegated"
    FACETS: ClassVar[tuple[str, ...]] = ("tool",)
    effect: str
    attempt: int = 1
    tool: str
    agent: str
    """The name of the child's agent."""
    child: str
    """The child's stream."""
    mode: Mode = "sync"
    deadline_at: AwareDatetime
    """The deadline, at which a child that has not ended is stopped."""
    rule: str
    """The rule or grant that allows the call."""


@dataclass(frozen=True)
class FileChange:
    """A file that a call changed. It is no `Part`: a part is written with all its defaults."""

    path: str
    """Its path, relative to the workspace."""
    before: str | None
    """The blob with its content before; None: there was no file, or the content is not kept."""
    before_digest: str
    """The sha256 of its content before, in hex; empty: there was no file."""
    after_digest: str
    """The sha256 of its content after, in hex; empty: it was deleted."""
    mode: int | None
    """Its permissions before; None: there was no file."""


class ToolReturned(Fact):
    """A tool call returned a result."""

    type: Literal["ToolReturned"] = "ToolReturned"
    effect: str
    attempt: int
    output: str
    """The text for the model; capped."""
    whole: str | None = None
    """The blob with the whole output or its start, if `output` was capped; else None."""
    size: int | None = None
    """The size of the whole output in bytes, if `output` was capped."""
    kept: int | None = None
    """The number of bytes in the blob; None: all."""
    cleaned: bool = False
    """Whether secrets, or bytes that cannot be recorded, were removed."""
    media_type: str = ""
    """The media type of the returned image; empty: no image."""
    # Two texts: a part would be written with its defaults into each of the frequent facts.
    image: str = ""
    """The image in base64; then `output` names its type and size."""
    seconds: float = 0.0
    child: str = ""
    """The child session that produced the result; the model gets the result as untrusted text."""
    value: JsonValue = Field(default=None, exclude_if=partial(is_, None))
    """The result of a plan's call, if it is not a text."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """Whether the result of a plan's call is null instead of a text."""
    changes: tuple[FileChange, ...] = Field(default=(), exclude_if=not_)
    """The files that the call changed, if the tool records them; in order."""


class ToolFailed(Fact):
    """An attempt of a call failed; with `retry_at` the call is retried, else it is over."""

    type: Literal["ToolFailed"] = "ToolFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    retry_after: float | None = None
    """The wait that the tool requested, in seconds."""
    retry_at: AwareDatetime | None = None
    cleaned: bool = False
    seconds: float = 0.0
    degraded: bool = False
    """Whether the tool is not critical, so that the work continues, with a partial result."""
    held: bool = False
    """Whether the call never began; it is retried after a person resumes the session."""
    child: str = ""
    """The child session that failed; the model gets the child's message as untrusted text."""


class ToolSkipped(Fact):
    """A call is over and did not run."""

    type: Literal["ToolSkipped"] = "ToolSkipped"
    effect: str
    reason: str
    """The text for the model, instead of a result."""
    rule: str = ""
    """The rule that denies the call; empty: no rule denies it."""
    degraded: bool = False
    """Whether the tool is not critical, so that the work continues, with a partial result."""


class ToolAsked(Fact):
    """A started call ended before it had an effect: it asks a person for something first."""

    type: Literal["ToolAsked"] = "ToolAsked"
    effect: str
    attempt: int
    requests: tuple[InputRequest, ...]
    digest: str
    """The digest of the requests."""
    state: str = Field(default="", exclude_if=not_)
    """What the tool gets back with the answer, encrypted."""
    paths: tuple[str, ...] = Field(default=(), exclude_if=not_)
    """The files that the call would change, if its tool holds changes."""
    judged: Judgement | None = Field(default=None, exclude_if=partial(is_, None))
    """The judgement of these changes, where it is stricter than that of the call."""
    cleaned: bool = False
    """Whether invalid bytes or secrets were removed from the requests."""
    seconds: float = 0.0


class ToolDeferred(Fact):
    """A started call goes on as a task of its server, which is asked for the outcome in polls."""

    type: Literal["ToolDeferred"] = "ToolDeferred"
    effect: str
    attempt: int
    state: str
    """The handle of the task, encrypted."""
    at: AwareDatetime
    """When the call became a task."""
    poll_at: AwareDatetime
    """The time of the next poll."""
    deadline_at: AwareDatetime
    """The time at which a task that has not ended counts as lost."""
    seconds: float = 0.0


class ToolInDoubt(Fact):
    """A started call that must not be repeated has lost its runner."""

    type: Literal["ToolInDoubt"] = "ToolInDoubt"
    effect: str
    attempt: int
    cause: Cause
    """The evidence that nobody will report the outcome."""


class ToolReconciled(Fact):
    """A call in doubt was resolved."""

    type: Literal["ToolReconciled"] = "ToolReconciled"
    effect: str
    outcome: Literal["happened", "did_not_happen", "run_again", "unknown"]
    """The resolution; the tool finds `did_not_happen`, and a person decides `run_again`."""
    by: str
    """The source of the resolution: `tool`, `policy`, `steer`, or the name of a person."""
    output: str = ""
    """The text for the model; empty if the call runs again."""
    value: JsonValue = Field(default=None, exclude_if=partial(is_, None))
    """The result of a plan's call, if it is known; else None."""
    is_null: bool = Field(default=False, exclude_if=not_)
    """Whether the result of a plan's call is null, or unknown."""
    degraded: bool = False
    """Whether the tool is not critical: no person has to decide, and the result is partial."""


class OutcomeCameLate(Fact):
    """The outcome of an effect came too late, and changes nothing."""

    type: Literal["OutcomeCameLate"] = "OutcomeCameLate"
    effect: str
    attempt: int
    outcome: Literal["ModelReplied", "ModelFailed", "ToolReturned", "ToolFailed"]
    """The type of the fact that would have recorded the outcome in time."""
