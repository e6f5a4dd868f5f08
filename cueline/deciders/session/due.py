"""What the shell owes the outside world, as if nobody were working on it.

After a crash the shell asks this again; there is no other recovery. A call
that no runner could be reached for is not recovered before its wait is over,
or `SessionContinued(by="runner")` says that one came; a start may be tried at
any time.
"""

from datetime import datetime

from msgspec import Struct

from cueline.deciders.session.budget import due_closings
from cueline.deciders.session.limit_state import Bill
from cueline.deciders.session.permission import asks, may_ask, may_start
from cueline.deciders.session.reminder import due_notifications
from cueline.deciders.session.state import LIVE, SessionState
from cueline.deciders.session.turn import Call, Question
from cueline.deciders.session.wait import next_deadline
from cueline.events.approval import SupersedeCode
from cueline.events.stream import id_of


class CallModel(Struct, frozen=True):
    """Ask the model; the request is recorded."""

    effect: str
    attempt: int
    fallback: int = 0
    """Which of the agent's models: 0 its own, n its n-th fallback."""


class ReserveBudget(Struct, frozen=True):
    """Have the ledger grant what the model call may cost; then it may start."""

    effect: str
    attempt: int
    fallback: int = 0
    """As of `CallModel`."""


class CloseReservation(Struct, frozen=True):
    """Tell the ledger what became of a model call."""

    bill: Bill


class RunTool(Struct, frozen=True):
    """Give the call to a runner."""

    effect: str
    attempt: int
    key: str
    """The idempotency key; the same for every attempt."""
    digest: str
    valid_until: datetime | None = None
    """Until when the grant counts, where there is one (I9)."""


class RecoverTool(Struct, frozen=True):
    """Ask the runner what became of a call that was started."""

    effect: str
    attempt: int
    key: str
    runner: str


class ReconcileTool(Struct, frozen=True):
    """Ask the tool itself what became of a call in doubt."""

    effect: str
    attempt: int
    key: str


class AskApproval(Struct, frozen=True):
    """Have the gate ask a person."""

    effect: str
    approval: str
    digest: str
    question: Question


class CloseApproval(Struct, frozen=True):
    """Tell the gate that the need has ended, or that the time has."""

    effect: str
    approval: str
    deadline_at: datetime
    """When the time decides it: it expires, or is granted automatically."""
    superseded_by: SupersedeCode | None
    """None: it is due at its deadline."""


class Cancel(Struct, frozen=True):
    """End an effect that is in flight: the session stops."""

    effect: str
    attempt: int


class NotifyPeople(Struct, frozen=True):
    """Run a hook of the policy."""

    effect: str
    approval: str
    """Empty where it is not about a question."""
    hook: int
    at: datetime | None
    """Not before; None is at once."""


Effect = (
    CallModel
    | ReserveBudget
    | CloseReservation
    | RunTool
    | RecoverTool
    | ReconcileTool
    | AskApproval
    | CloseApproval
    | Cancel
    | NotifyPeople
)


def due(state: SessionState) -> list[Effect]:
    """List the effects owed."""
    if state.status not in LIVE:
        return []
    owed: list[Effect] = []
    if state.account.bills or state.hold or state.stop:  # else none, and it is not poisoned
        owed += [CloseReservation(bill) for bill in due_closings(state)]
        if state.poisoned:
            return owed
    model = state.turn.model
    if model is not None and may_ask(state, model):
        ask = ReserveBudget if state.limited else CallModel
        owed.append(ask(model.effect, model.attempt, model.fallback))
    if model is not None and model.phase == "started" and state.stop:
        owed.append(Cancel(model.effect, model.attempt))
    for call in state.turn.calls:
        if call.phase != "closed":
            owed += _owed_for(state, call)
        if call.approval is not None or call.judged.answer == "notify":
            owed += [NotifyPeople(call.effect, *told) for told in due_notifications(state, call)]
    return owed


def _owed_for(state: SessionState, call: Call) -> list[Effect]:
    key = f"{state.stream}/{call.effect}"
    if call.phase == "started":
        assert call.runner is not None, "a started call names its runner"
        recover = RecoverTool(call.effect, call.attempt, key, call.runner)
        owed: list[Effect] = [] if call.unreached else [recover]
        return [*owed, Cancel(call.effect, call.attempt)] if state.stop else owed
    if call.approval is not None and call.asking:
        return [_closing(state, call)]
    if may_start(state, call):
        until = call.approval.deadline_at if call.approval else None
        return [RunTool(call.effect, call.attempt + 1, key, call.digest, until)]
    question = asks(state, call)
    if question is not None:
        approval = f"{id_of(state.stream)}.{call.effect}.{call.asked + 1}"
        return [AskApproval(call.effect, approval, call.digest, question)]
    if call.phase == "in_doubt" and call.reconciles and not (state.hold or state.stop):
        return [] if call.unreached else [ReconcileTool(call.effect, call.attempt, key)]
    return []


def _closing(state: SessionState, call: Call) -> CloseApproval:
    assert call.approval is not None, "what is closed is open"
    by: SupersedeCode | None = "stop" if state.stop else "steer" if state.steered else None
    if by is None and call.problem is not None:
        by = "change"  # of its tool: it will not run, whatever a person says
    return CloseApproval(call.effect, call.approval.id, call.approval.closes_at, by)


def wake_at(state: SessionState) -> datetime | None:
    """Return the next moment at which something is due by itself.

    What is due then is recorded as `SessionContinued(at=now)`; an approval as
    what the gate makes of it.
    """
    return next_deadline(state)
