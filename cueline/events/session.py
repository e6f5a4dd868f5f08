"""The facts of a session.

Each fact keeps its meaning for ever. A step begins with the fact that came
from outside; it holds the whole command, so that deciding again on the state
before it gives the same events (I10).
"""

from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import AwareDatetime, JsonValue

from cueline.events.agent import AgentSpec, Part
from cueline.events.budget import Allowance
from cueline.events.fact import Fact
from cueline.events.inbox import InboxMessage
from cueline.events.message import Block, Cost, ToolCall, Usage

WaitKind = Literal[
    "operator", "budget", "approval", "child", "sandbox", "runner", "breaker", "retry"
]
"""Why a session waits, the strongest first."""

Verdict = Literal["granted", "denied", "expired", "superseded"]


class SessionStarted(Fact):
    """The first owner took the session up; stands for version 1 of its inbox."""

    SCHEMA: ClassVar[int] = 2
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
    prompt_fold: int = 1
    """Which fold of the prompt the session keeps using."""


class SessionForked(Fact):
    """A new session goes on from another's past; nothing in flight crosses it.

    Stands for version 1 of the new session's inbox.
    """

    SCHEMA: ClassVar[int] = 2
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
    always: tuple[str, ...] | None = None
    """Where the tool may be used for the rest of the session."""
    told: str = ""
    """What the agent is told of the answer."""
    accepted: bool = True
    """Whether this decision counted."""
    reason: str = ""


class MessageReceived(Fact):
    """The session read a message of its inbox."""

    SCHEMA: ClassVar[int] = 2
    type: Literal["MessageReceived"] = "MessageReceived"
    inbox_version: int
    recorded_at: AwareDatetime
    """When the log recorded the message: that is when it counts."""
    message: InboxMessage
    gate_answer: GateAnswer | None = None


class MessageRefused(Fact):
    """The session read a message of its inbox that changes nothing."""

    SCHEMA: ClassVar[int] = 2
    type: Literal["MessageRefused"] = "MessageRefused"
    inbox_version: int
    recorded_at: AwareDatetime
    message: InboxMessage
    gate_answer: GateAnswer | None = None
    reason: str


class ModelRequested(Fact):
    """A turn, or one more attempt at it, begins; the prompt is a fold up to here."""

    type: Literal["ModelRequested"] = "ModelRequested"
    effect: str
    """`<turn>.m`."""
    attempt: int
    messages: tuple[int, ...] = ()
    """Inbox versions of the messages that this call tells the model first."""
    digest: str
    """Of the whole prompt, chained message by message."""
    prefix_digest: str
    """Of the part that the previous request already had; empty when another model is asked."""
    fallback: int = 0
    """Which of the agent's models is asked: 0 its own, n its n-th fallback."""


class ModelStarted(Fact):
    """The call goes out now; without an outcome it is a lost attempt."""

    type: Literal["ModelStarted"] = "ModelStarted"
    effect: str
    attempt: int
    grant: str | None = None
    """The ledger's grant, when a limit of money or tokens applies."""


class ModelReplied(Fact):
    """The model answered; the calls in it are thereby requested, `<turn>.<index>`."""

    type: Literal["ModelReplied"] = "ModelReplied"
    FACETS: ClassVar[tuple[str, ...]] = ("model",)
    effect: str
    attempt: int
    content: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str
    usage: Usage = Usage()
    cost: Cost | None = None
    model: str = ""
    """The model that answered, as the provider names it."""
    seconds: float = 0.0


class ModelFailed(Fact):
    """An attempt brought no answer."""

    SCHEMA: ClassVar[int] = 2
    type: Literal["ModelFailed"] = "ModelFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    """None for an attempt that was lost with its host."""
    retry_after: float | None = None
    """What the provider asked for, in seconds."""
    retry_at: AwareDatetime | None = None
    """None: it is not tried again for its own sake."""
    usage: Usage | None = None
    seconds: float = 0.0


class ToolStarted(Fact):
    """A runner is told to run a call; nothing is known of the outcome yet."""

    type: Literal["ToolStarted"] = "ToolStarted"
    FACETS: ClassVar[tuple[str, ...]] = ("tool",)
    effect: str
    attempt: int
    tool: str
    runner: str
    """The only incarnation that may be sent the call."""
    epoch: int
    rule: str
    """Which rule, or whose grant, allows it."""
    usd: Decimal | None = None
    """What the call is estimated to cost."""
    notify: bool = False
    """People are told of it."""


class ToolReturned(Fact):
    """The tool answered."""

    type: Literal["ToolReturned"] = "ToolReturned"
    effect: str
    attempt: int
    output: str
    """What the model is told; capped."""
    whole: str | None = None
    """The blob with the whole output, when `output` was capped."""
    size: int | None = None
    """Of the whole output in bytes, when `output` was capped."""
    cleaned: bool = False
    """Something was taken out: secrets, or bytes that cannot be kept."""
    seconds: float = 0.0


class ToolFailed(Fact):
    """An attempt failed; with `retry_at` it is tried again, without it is over."""

    type: Literal["ToolFailed"] = "ToolFailed"
    FACETS: ClassVar[tuple[str, ...]] = ("kind",)
    effect: str
    attempt: int
    kind: str
    message: str
    failed_at: AwareDatetime | None = None
    retry_after: float | None = None
    """What the tool asked for, in seconds."""
    retry_at: AwareDatetime | None = None
    cleaned: bool = False
    seconds: float = 0.0
    degraded: bool = False
    """The tool is not critical: the work goes on without it, and its result is partial."""


class ToolSkipped(Fact):
    """The call is over without having been run."""

    type: Literal["ToolSkipped"] = "ToolSkipped"
    effect: str
    reason: str
    """What the model is told."""
    rule: str = ""
    """Which rule denies it, when one does."""
    degraded: bool = False
    """The tool is not critical: the work goes on without it, and its result is partial."""


class ToolInDoubt(Fact):
    """The call was started, its runner is gone, and it must not be repeated."""

    type: Literal["ToolInDoubt"] = "ToolInDoubt"
    effect: str
    attempt: int
    evidence: str
    """How it is known that the runner is gone."""


class ToolReconciled(Fact):
    """It was found out, or decided, what became of a call in doubt."""

    type: Literal["ToolReconciled"] = "ToolReconciled"
    effect: str
    outcome: Literal["happened", "did_not_happen", "unknown"]
    by: str
    """`tool`, `policy`, or the person."""
    output: str = ""
    """What the model is told; empty when the call is run again."""
    degraded: bool = False
    """The tool is not critical: nobody is asked, and the result is partial."""


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
    always: tuple[str, ...] | None = None
    """Where the tool may be used for the rest of the session."""


class PeopleTold(Fact):
    """A hook of the policy was run, so that people learn of a call."""

    type: Literal["PeopleTold"] = "PeopleTold"
    effect: str
    approval: str = ""
    """The question, where it is about one."""
    hook: int
    """Its place among the policy's hooks."""
    problem: str = ""
    """Why nobody was reached; it is not tried again."""
    at: AwareDatetime


class SessionWaiting(Fact):
    """Nothing is in hand; the session rests."""

    type: Literal["SessionWaiting"] = "SessionWaiting"
    kind: WaitKind
    why: str
    deadline_at: AwareDatetime | None = None
    effects: tuple[str, ...] = ()
    exhausted: bool = False
    """Of `budget`: what was spent leaves no room, and only a raise makes some."""


class SessionContinued(Fact):
    """The session goes on."""

    type: Literal["SessionContinued"] = "SessionContinued"
    by: str
    """`deadline`, `message`, `replay` …"""
    at: AwareDatetime | None = None


class SessionIdle(Fact):
    """The turn is over, and the session stays open for more messages."""

    type: Literal["SessionIdle"] = "SessionIdle"
    result: str = ""
    partial: bool = False
    """A tool that is not critical failed on the way, since the session was idle last."""


class LostAttempt(Part):
    """An attempt that was in flight when its host died."""

    effect: str
    attempt: int


class SessionTakenOver(Fact):
    """A new owner goes on after the former one died in the middle."""

    type: Literal["SessionTakenOver"] = "SessionTakenOver"
    epoch: int
    lost_attempts: tuple[LostAttempt, ...] = ()
    at: AwareDatetime


class ReservationClosed(Fact):
    """The ledger has closed what it held for a model call."""

    type: Literal["ReservationClosed"] = "ReservationClosed"
    effect: str
    attempt: int
    outcome: Literal["settled", "estimated", "released"]
    """Settled at what was reported, or at all that was reserved; or never started."""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    shares: dict[str, float] = {}
    """Of each limit on the way to the root, the share that is spent: the fullest of each name."""


class LimitRaised(Fact):
    """Limits of the session are higher from here on; what is None is as before."""

    type: Literal["LimitRaised"] = "LimitRaised"
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_turns: int | None = None
    max_active_seconds: float | None = None
    max_wall_seconds: float | None = None


class ChildSpawned(Fact):
    """The session has a child."""

    type: Literal["ChildSpawned"] = "ChildSpawned"
    child: str
    """Its stream."""


class ChildSettled(Fact):
    """A child of the session has ended, and this is what it spent."""

    type: Literal["ChildSettled"] = "ChildSettled"
    child: str
    status: Literal["completed", "failed", "stopped"]
    tokens: int = 0
    usd: Decimal = Decimal(0)


class LimitWarned(Fact):
    """A limit is nearly used up; said once for each limit and share of it."""

    type: Literal["LimitWarned"] = "LimitWarned"
    FACETS: ClassVar[tuple[str, ...]] = ("limit",)
    limit: str
    """Its name in `Limits`."""
    share: float
    """0.8: people are told; 0.9: the agent is told, too."""
    used: float
    of: float
    """Of tokens and money 1: `used` is the share of the fullest limit on the way to the root."""
    note: str = ""
    """What the next model call is told."""


class PromptPrefixChanged(Fact):
    """The next request's beginning differs from what the last one sent."""

    type: Literal["PromptPrefixChanged"] = "PromptPrefixChanged"
    reason: str


class OutcomeCameLate(Fact):
    """An outcome arrived that nobody waits for any more; it changes nothing."""

    type: Literal["OutcomeCameLate"] = "OutcomeCameLate"
    effect: str
    attempt: int
    outcome: str
    """The type of the fact that it would have been."""
    message: str = ""


class SessionCompleted(Fact):
    """The agent reached its goal; final (I6)."""

    type: Literal["SessionCompleted"] = "SessionCompleted"
    result: str
    partial: bool = False
    """A tool that is not critical failed on the way."""


class SessionFailed(Fact):
    """The session cannot go on; final (I6)."""

    type: Literal["SessionFailed"] = "SessionFailed"
    kind: str
    error: str
    recoverable: bool = False


class SessionStopped(Fact):
    """Somebody ended the session; final (I6)."""

    type: Literal["SessionStopped"] = "SessionStopped"
    by: str
    reason: str


SessionEvent = (
    SessionStarted
    | SessionForked
    | MessageReceived
    | MessageRefused
    | ModelRequested
    | ModelStarted
    | ModelReplied
    | ModelFailed
    | ToolStarted
    | ToolReturned
    | ToolFailed
    | ToolSkipped
    | ToolInDoubt
    | ToolReconciled
    | ApprovalRequested
    | ApprovalResolved
    | PeopleTold
    | SessionWaiting
    | SessionContinued
    | SessionIdle
    | SessionTakenOver
    | ReservationClosed
    | LimitRaised
    | ChildSpawned
    | ChildSettled
    | LimitWarned
    | PromptPrefixChanged
    | OutcomeCameLate
    | SessionCompleted
    | SessionFailed
    | SessionStopped
)
