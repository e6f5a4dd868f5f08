"""The state of the current turn: its model call and tool calls, no message bodies."""

from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from cueline.events.agent import Declared
from cueline.events.codes import Cause
from cueline.events.inbox import Resolution
from cueline.events.input_request import InputRequest
from cueline.events.message import Arguments
from cueline.events.session import UNJUDGED, Judgement, Verdict


class BreakerWait(Struct, frozen=True):
    """The wait of an effect that a breaker blocked before it started."""

    until: datetime
    cause: Cause


class BudgetWait(Struct, frozen=True):
    """The wait of a model call that does not fit its budget."""

    cause: Cause
    until: datetime | None
    """The time at which the session requests budget again; None if only a raised limit helps."""


class LastFailure(Struct, frozen=True):
    """Why an attempt failed; smaller than a `Cause`: 50 instead of 700 bytes."""

    failure: str
    message: str

    @property
    def cause(self) -> Cause:
        """The cause of the wait or end that follows from the failure."""
        return Cause(code="model_failed", failure=self.failure, message=self.message)


class ModelCall(Struct, frozen=True):
    """The open model call of the current turn."""

    effect: str
    attempt: int
    phase: Literal["requested", "started", "retry", "given_up"]
    fallback: int = 0
    """The model to call: 0 is the agent's own, n its n-th fallback."""
    failures: int = 0
    """The failed attempts with the model since the turn began or was resumed."""
    failing_since: datetime | None = None
    """The time at which the first attempt failed; None: no attempt failed."""
    retry_at: datetime | None = None
    rests: bool = False
    """Whether the retry is so late that the session waits for it."""
    error: LastFailure | None = None
    """The last failure."""
    fatal: bool = False
    """Whether the failure is fatal."""
    blocked_by_breaker: BreakerWait | None = None
    granted: bool = False
    """Whether the ledger holds a reservation for the call."""
    room: BudgetWait | None = None
    """The wait for budget."""
    silent: bool = False
    """Whether the model has replied without an answer."""
    early: bool = False
    """Whether a person resumed the session, so that the call may probe an open breaker early."""


Question = Literal["may_it_run", "did_it_happen", "what_to_answer"]


class ApprovalAnswer(Struct, frozen=True):
    """The gate's answer to a decision."""

    verdict: Verdict
    by: str
    note: str = ""
    edit: Arguments | None = None
    """The edited arguments, until the next fact resolves the approval."""
    digest: str = ""
    always: tuple[str, ...] | None = None
    usd: Decimal | None = None
    """The estimated cost of the edited call."""
    valid_until: datetime | None = None
    """The expiry of a grant that was read after its deadline."""
    resolution: Resolution | None = None
    """The resolution of a call in doubt."""
    result: str = ""


class CallApproval(Struct, frozen=True):
    """An approval that is open, answered or granted."""

    id: str
    digest: str
    deadline_at: datetime
    """The expiry of the approval; for a grant, the end of its validity."""
    question: Question
    answer: ApprovalAnswer | None = None
    """The gate's answer that is not resolved yet; None: no answer."""
    granted: str | None = None
    """The person who granted the call."""
    auto_at: datetime | None = None
    """The time of the automatic grant, unless the approval is denied earlier."""
    people_only: bool = False
    """Whether the approval is never granted automatically."""
    escalated: bool = False
    """Whether the approval was escalated because nobody answered in time."""
    seen: str = ""
    """The digest of the shown diff."""

    @property
    def closes_at(self) -> datetime:
        """The time at which the approval expires or is granted automatically."""
        return self.deadline_at if self.auto_at is None else min(self.auto_at, self.deadline_at)


class InDoubtResolution(Struct, frozen=True):
    """The resolution of a call in doubt, and the person who gave it."""

    resolution: Resolution
    by: str
    note: str = ""
    result: str = ""


class AskedInput(Struct, frozen=True):
    """What a call asked a person for, and the answer."""

    requests: tuple[InputRequest, ...]
    digest: str
    state: str
    """What the tool gets back with the answer, encrypted."""
    answer: str | None = None
    """The answer by key, as JSON; None before a person has answered."""


class ServerTask(Struct, frozen=True):
    """The task of a server in which a deferred call goes on."""

    state: str
    """Its handle, encrypted."""
    since: datetime
    deadline_at: datetime


class RunnerWait(Struct, frozen=True):
    """The wait of a call whose runner cannot be reached, or whose sandbox has no slot."""

    until: datetime
    """The end of the wait, which never moves."""
    phase: Literal["waiting", "trying", "last_try"]
    slot: Cause | None = None
    """Why it waits for a slot of a sandbox instead; None: it waits for the runner."""


class CallProblem(Struct, frozen=True):
    """The reason why a call does not run."""

    code: Literal["judged", "rejected", "expired", "tool_changed", "step_failed"]
    text: str = ""
    """The text of the judgement for `judged`, or the person's note for `rejected`."""


Phase = Literal[
    "requested",
    "started",
    "asked",
    "deferred",
    "delegated",
    "awaiting",
    "retry",
    "in_doubt",
    "closed",
]
AT_REST: Final[frozenset[Phase]] = frozenset({"delegated", "closed"})
"""The phases of a call for which no effect is due and no rule applies."""


class Call(Struct, frozen=True):
    """One tool call of the current turn."""

    effect: str
    id: str
    """The provider's id of the call."""
    tool: str
    declared: Declared
    gated: bool
    """Whether the call needs an approval."""
    digest: str
    """The digest of the exact call (I9)."""
    judged: Judgement = UNJUDGED
    """The policy's judgement."""
    phase: Phase = "requested"
    attempt: int = 0
    failures: int = 0
    failing_since: datetime | None = None
    runner: str | None = None
    retry_at: datetime | None = None
    """The time of the retry, or of the next poll of a task, None once that is due.

    In a wait for a message: its deadline, None after the deadline.
    """
    rests: bool = False
    approval: CallApproval | None = None
    asked: int = 0
    """The number of approvals that were opened for the call."""
    escalated: bool = False
    """Whether nobody answered in time, so that the approval was escalated."""
    told: tuple[tuple[str, int], ...] = ()
    """The approvals and hooks by which people were notified."""
    problem: CallProblem | None = None
    """The reason why the call cannot run."""
    doubt: Cause | None = None
    """The evidence that nobody will report the outcome of a call in doubt."""
    unclear: bool = False
    """Whether the tool's `reconcile` could not find the outcome."""
    in_doubt_resolution: InDoubtResolution | None = None
    """A person's resolution of a call in doubt."""
    input: AskedInput | None = None
    """What the call asked a person for."""
    task: ServerTask | None = None
    """The task of a deferred call, whose next poll has the number `attempt`."""
    reach: RunnerWait | None = None
    blocked_by_breaker: BreakerWait | None = None
    early: bool = False
    """Whether a person resumed the session, so that the call may probe an open breaker early."""
    delegates: bool = False
    """Whether the call starts a child session instead of a tool."""
    child: str | None = None
    """The child's stream; None before the child was started."""
    message: str = ""
    """The name of the message that a step waits for instead of a tool."""
    polls: str | None = None
    """The child session whose end the call requests, or the words by which it looks for tools.

    None: the call runs a tool.
    """
    stops: bool = False
    """Whether the call also stops the child session whose end it requests."""
    holds: bool = False
    """Whether the question about the call comes after its run, with what it would change."""

    @property
    def repeatable(self) -> bool:
        """Whether the call may run twice."""
        return self.declared in ("read_only", "idempotent")

    @property
    def parallel(self) -> bool:
        """Whether the call may run while other calls run."""
        return self.delegates or (self.repeatable and not self.holds)

    @property
    def asking(self) -> bool:
        """Whether the approval of the call is open."""
        return self.approval is not None and self.approval.granted is None

    @property
    def unanswered(self) -> bool:
        """Whether the call asks a person for something, and has no answer."""
        return self.input is not None and self.input.answer is None

    @property
    def polling(self) -> bool:
        """Whether the server of a deferred call is to be asked for its task now."""
        return self.phase == "deferred" and self.retry_at is None and not self.unanswered

    @property
    def unreached(self) -> bool:
        """Whether the call waits for a runner."""
        return self.reach is not None and self.reach.phase == "waiting"

    @property
    def reconciles(self) -> bool:
        """Whether the tool's `reconcile` can still find the outcome of the call."""
        return (
            self.declared == "reconcile" and not self.unclear and self.in_doubt_resolution is None
        )

    @property
    def allowed(self) -> bool:
        """Whether the call needs no approval, or has been granted."""
        granted = self.approval is not None and not self.asking
        return not self.gated or self.runs_held or granted

    @property
    def runs_held(self) -> bool:
        """Whether the next run of the call changes nothing before its question."""
        return self.holds and self.input is None


class Turn(Struct, frozen=True):
    """The current turn of a session."""

    number: int = 0
    since_user: int = 0
    """The number of turns since the last user message was received or shown to the model."""
    model: ModelCall | None = None
    calls: tuple[Call, ...] = ()
    """The calls of the turn; only `with_calls` and `with_call` change them."""
    awake: tuple[Call, ...] = ()
    """The calls that are not at rest, which the rules read after each fact."""
    delegated: int = 0
    """The number of calls that wait for their child."""
    active_seconds: float = 0.0
    """The known duration of the calls of this turn and all earlier turns, in seconds."""
    unanswered: bool = False
    """Whether the model call has no reply."""
    answer: str = ""
    """The last reply, if it requested no calls, until the next request; else empty."""
    fallback: int = 0
    """The model that was called last."""
    lacking: tuple[str, ...] = ()
    """The capabilities that the reply's model lacks and the request needed."""

    def with_calls(self, calls: tuple[Call, ...]) -> "Turn":
        """Return the turn with *calls*."""
        return replace(
            self,
            calls=calls,
            awake=tuple([call for call in calls if call.phase not in AT_REST]),
            delegated=[call.phase for call in calls].count("delegated"),
        )

    def with_call(self, changed: Call) -> "Turn":
        """Return the turn with *changed* instead of the call with the same effect."""
        place, effect = self.place(changed.effect), changed.effect
        assert place is not None, "a changed call was read from this turn"
        if changed.phase in AT_REST:
            awake = [call for call in self.awake if call.effect != effect]
        else:
            awake = [changed if call.effect == effect else call for call in self.awake]
        left = self.delegated - (self.calls[place].phase == "delegated")
        return replace(
            self,
            calls=(*self.calls[:place], changed, *self.calls[place + 1 :]),
            awake=tuple(awake),
            delegated=left + (changed.phase == "delegated"),
        )

    def place(self, effect: str) -> int | None:
        """Return the index of the call *effect*."""
        try:
            # Calls of a reply stand at their number: a search in 1,000 costs more than the rule.
            place = int(effect.rpartition(".")[2])
            if self.calls[place].effect == effect:
                return place
        except (ValueError, IndexError):
            pass
        return next((n for n, call in enumerate(self.calls) if call.effect == effect), None)
