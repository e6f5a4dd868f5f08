"""Lists the effects that a session needs, whether or not they are running.

After a crash the host calls `due` again; there is no other recovery. A call whose
runner is unreachable is recovered after its wait, or after
`SessionContinued(by="runner")`.
"""

from datetime import datetime

from msgspec import Struct

from cueline.deciders.session.budget import due_closings
from cueline.deciders.session.limit_state import Bill
from cueline.deciders.session.permission import asks, may_ask, may_start
from cueline.deciders.session.state import LIVE, SessionState
from cueline.deciders.session.turn import Call, Question
from cueline.deciders.session.wait import due_notifications
from cueline.events.approval import SupersedeCode
from cueline.events.stream import id_of


class CallModel(Struct, frozen=True):
    """The effect to call the model; the request is recorded."""

    effect: str
    attempt: int
    fallback: int = 0
    """The model to call: 0 is the agent's own, n its n-th fallback."""


class ReserveBudget(Struct, frozen=True):
    """The effect to reserve the cost of a model call at the ledger, before the call starts."""

    effect: str
    attempt: int
    fallback: int = 0
    """The model to call; see `CallModel`."""


class CloseReservation(Struct, frozen=True):
    """The effect to settle or release a model call at the ledger."""

    bill: Bill


class RunTool(Struct, frozen=True):
    """The effect to run a tool call on a runner."""

    effect: str
    attempt: int
    key: str
    """The idempotency key of the call, which all attempts share."""
    digest: str
    valid_until: datetime | None = None
    """The expiry of the call's grant (I9); None without a grant."""


class StartChild(Struct, frozen=True):
    """The effect to start the child session of a call; recorded as `CallDelegated`."""

    effect: str
    valid_until: datetime | None
    """The expiry of the call's grant; None without a grant."""


class AwaitMessage(Struct, frozen=True):
    """The effect to begin the wait for a step's message; recorded as `MessageAwaited`."""

    effect: str


class AttachSandbox(Struct, frozen=True):
    """The effect to start the session's sandbox, before a call that runs in it."""

    effect: str
    """The call."""


class RecoverTool(Struct, frozen=True):
    """The effect to request the outcome of a started call from its runner."""

    effect: str
    attempt: int
    key: str
    runner: str


class PollTask(Struct, frozen=True):
    """The effect to ask the server of a deferred call for its task; it may be repeated."""

    effect: str
    attempt: int
    key: str


class ReconcileTool(Struct, frozen=True):
    """The effect to run the tool's `reconcile`, which finds the outcome of a call in doubt."""

    effect: str
    attempt: int
    key: str


class AskApproval(Struct, frozen=True):
    """The effect to open an approval at the gate."""

    effect: str
    approval: str
    digest: str
    question: Question


class CloseApproval(Struct, frozen=True):
    """The effect to close an approval at the gate: superseded or expired."""

    effect: str
    approval: str
    deadline_at: datetime
    """The time at which the approval expires, or is granted automatically."""
    superseded_by: SupersedeCode | None
    """The reason; None: the deadline has passed."""


class Cancel(Struct, frozen=True):
    """The effect to cancel a running effect, because the session stops."""

    effect: str
    attempt: int


class NotifyPeople(Struct, frozen=True):
    """The effect to run a hook of the policy."""

    effect: str
    approval: str
    """The approval; empty if the hook is not about an approval."""
    hook: int
    at: datetime | None
    """The earliest time to run the hook; None: now."""


Effect = (
    CallModel
    | ReserveBudget
    | CloseReservation
    | RunTool
    | AttachSandbox
    | StartChild
    | AwaitMessage
    | RecoverTool
    | ReconcileTool
    | PollTask
    | AskApproval
    | CloseApproval
    | Cancel
    | NotifyPeople
)


def due(state: SessionState) -> list[Effect]:
    """Return the effects that are due."""
    if state.status not in LIVE:
        return []
    owed: list[Effect] = []
    if state.account.bills or state.hold or state.stop:  # a poisoned session has one of these
        owed += [CloseReservation(bill) for bill in due_closings(state)]
        if state.poisoned:
            return owed
    model = state.turn.model
    if model is not None and may_ask(state, model):
        ask = ReserveBudget if state.limited else CallModel
        owed.append(ask(model.effect, model.attempt, model.fallback))
    if model is not None and model.phase == "started" and state.stop:
        owed.append(Cancel(model.effect, model.attempt))
    # People may be notified of calls that are over.
    calls = state.turn.calls
    for call in calls if calls and state.agent.policy.hooks else state.turn.awake:
        if call.phase != "closed":
            owed += _effects_of_call(state, call)
        if call.approval is not None or call.judged.answer == "notify":
            owed += [NotifyPeople(call.effect, *told) for told in due_notifications(state, call)]
    return owed


def _effects_of_call(state: SessionState, call: Call) -> list[Effect]:
    key = f"{state.stream}/{call.effect}"
    if call.phase == "started":
        assert call.runner is not None, "a started call names its runner"
        recover = RecoverTool(call.effect, call.attempt, key, call.runner)
        owed: list[Effect] = [] if call.unreached else [recover]
        return [*owed, Cancel(call.effect, call.attempt)] if state.stop else owed
    if call.approval is not None and call.asking:
        return [_closing(state, call)]
    if call.phase == "deferred" and (state.stop or (call.polling and not state.hold)):
        return [PollTask(call.effect, call.attempt, key)]
    if may_start(state, call):
        until = call.approval.deadline_at if call.approval else None
        if call.message:
            return [AwaitMessage(call.effect)]
        if call.delegates:
            return [StartChild(call.effect, until)]
        return [RunTool(call.effect, call.attempt + 1, key, call.digest, until)]
    question = asks(state, call)
    if question is not None:
        approval = f"{id_of(state.stream)}.{call.effect}.{call.asked + 1}"
        digest = call.digest
        if question == "what_to_answer" and call.input is not None:
            digest = call.input.digest
        return [AskApproval(call.effect, approval, digest, question)]
    if call.phase == "in_doubt" and call.reconciles and not (state.hold or state.stop):
        return [] if call.unreached else [ReconcileTool(call.effect, call.attempt, key)]
    return []


def _closing(state: SessionState, call: Call) -> CloseApproval:
    assert call.approval is not None, "what is closed is open"
    by: SupersedeCode | None = "stop" if state.stop else "steer" if state.steered else None
    if by is None and call.problem is not None:
        by = "change"  # of its tool: it will not run, whatever a person decides
    return CloseApproval(call.effect, call.approval.id, call.approval.closes_at, by)
