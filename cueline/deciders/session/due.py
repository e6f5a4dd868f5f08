"""What the shell owes the outside world, as if nobody were working on it.

After a crash the shell asks this again; there is no other recovery.
"""

from dataclasses import dataclass
from datetime import datetime

from cueline.deciders.session.decide import asks, may_start
from cueline.deciders.session.state import Call, Question, SessionState, Status
from cueline.events.stream import id_of


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model; the request is recorded."""

    effect: str
    attempt: int


@dataclass(frozen=True, slots=True)
class RunTool:
    """Give the call to a runner."""

    effect: str
    attempt: int
    key: str
    """The idempotency key; the same for every attempt."""
    digest: str
    valid_until: datetime | None = None
    """Until when the grant counts, where there is one (I9)."""


@dataclass(frozen=True, slots=True)
class RecoverTool:
    """Ask the runner what became of a call that was started."""

    effect: str
    attempt: int
    key: str
    runner: str


@dataclass(frozen=True, slots=True)
class ReconcileTool:
    """Ask the tool itself what became of a call in doubt."""

    effect: str
    attempt: int
    key: str


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Have the gate ask a person."""

    effect: str
    approval: str
    digest: str
    question: Question


@dataclass(frozen=True, slots=True)
class CloseApproval:
    """Tell the gate that the need has ended, or that the time has."""

    effect: str
    approval: str
    deadline_at: datetime
    superseded_by: str | None
    """None: it is due at its deadline."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """End an effect that is in flight: the session stops."""

    effect: str
    attempt: int


Effect = CallModel | RunTool | RecoverTool | ReconcileTool | AskApproval | CloseApproval | Cancel


def due(state: SessionState) -> list[Effect]:
    """List the effects owed."""
    if state.finished or state.status is Status.CREATED or state.poisoned:
        return []
    owed: list[Effect] = []
    model = state.turn.model
    if model is not None and model.phase == "requested" and not state.hold and not state.stop:
        owed.append(CallModel(model.effect, model.attempt))
    if model is not None and model.phase == "started" and state.stop:
        owed.append(Cancel(model.effect, model.attempt))
    for call in state.open_calls:
        owed.extend(_owed_for(state, call))
    return owed


def _owed_for(state: SessionState, call: Call) -> list[Effect]:
    key = f"{state.stream}/{call.effect}"
    if call.phase == "started":
        assert call.runner is not None, "a started call names its runner"
        recover = RecoverTool(call.effect, call.attempt, key, call.runner)
        return [recover, Cancel(call.effect, call.attempt)] if state.stop else [recover]
    if call.approval is not None and call.asking:
        return [_closing(state, call)]
    if may_start(state, call):
        until = call.approval.deadline_at if call.approval else None
        return [RunTool(call.effect, call.attempt + 1, key, call.digest, until)]
    question = asks(state, call)
    if question is not None:
        approval = f"{id_of(state.stream)}.{call.effect}.{call.asked + 1}"
        return [AskApproval(call.effect, approval, call.digest, question)]
    unasked = call.declared == "reconcile" and not call.unclear and call.ruling is None
    if call.phase == "in_doubt" and unasked and not state.hold and not state.stop:
        return [ReconcileTool(call.effect, call.attempt, key)]
    return []


def _closing(state: SessionState, call: Call) -> CloseApproval:
    assert call.approval is not None
    by = "stop" if state.stop else "steer" if state.steered else None
    return CloseApproval(call.effect, call.approval.id, call.approval.deadline_at, by)


def wake_at(state: SessionState) -> datetime | None:
    """Return the next moment at which something is due by itself."""
    if state.finished or state.poisoned:
        return None
    times = [
        call.approval.deadline_at for call in state.open_calls if call.approval and call.asking
    ]
    if not state.hold:
        times += [call.retry_at for call in state.open_calls if call.retry_at is not None]
        if state.turn.model is not None and state.turn.model.retry_at is not None:
            times.append(state.turn.model.retry_at)
        if state.runner_wait is not None:
            times.append(state.runner_wait)
    return min(times, default=None)
