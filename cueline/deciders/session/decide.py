"""The steps of a session: one outside fact, and the events derived from it.

The commands of a session are the facts that they would record: a model's reply, an
inbox message, the start of a call. A step's first event holds the whole command,
so deciding again on the state before it gives the same step (I10); `command_of`
returns that command.
"""

from cueline.deciders.retry import HELD, LOST, retry_at
from cueline.deciders.session.budget import closes
from cueline.deciders.session.children import is_late
from cueline.deciders.session.derived_events import with_derived_events
from cueline.deciders.session.evolve import evolve
from cueline.deciders.session.failed_call import degrades, fail_lost_call, lost_retry_at, retried_at
from cueline.deciders.session.judging import judge_edit, judge_held, judge_reply
from cueline.deciders.session.limit import refusal
from cueline.deciders.session.messages import unheard
from cueline.deciders.session.permission import asks, may_ask, may_start
from cueline.deciders.session.state import LIVE, SessionState
from cueline.deciders.session.turn import Call
from cueline.events.agent import answering
from cueline.events.codes import NO_ANSWER, TRANSIENT, Cause, Refusal
from cueline.events.inbox import (
    ChildAsked,
    ChildEnded,
    DecisionGiven,
    RaiseAsked,
    RunnerGone,
    StartAsked,
)
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    CallDelegated,
    MessageAwaited,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelStarted,
    OutcomeCameLate,
    SessionEvent,
    SessionWaiting,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.events.status import DRIVEN, Status

_PERHAPS_VAIN = frozenset({"SessionContinued", "SessionWaiting"})
_ENDED_BY_US = frozenset({"lost", "cancelled", "killed"})
"""The error codes of a call that a stop cut off, and that may have had effects."""


def decide(command: SessionEvent, state: SessionState) -> list[SessionEvent]:
    """Return the events of *command*, an outside fact; `[]` if it changes nothing."""
    return step(command, state)[0]


def step(command: SessionEvent, state: SessionState) -> tuple[list[SessionEvent], SessionState]:
    """Return the events of *command* and the state after these events."""
    opening = opening_of(command, state)
    if opening is None:
        return [], state
    facts, after = with_derived_events(evolve(state, opening))
    if opening.type in _PERHAPS_VAIN and after == state:
        return [], state
    return [opening, *facts], after


def command_of(opening: SessionEvent) -> SessionEvent:
    """Return the command in a step's first event."""
    match opening:
        case MessageRefused():
            return MessageReceived(
                inbox_version=opening.inbox_version,
                recorded_at=opening.recorded_at,
                message=opening.message,
                gate_answer=opening.gate_answer,
            )
        case MessageReceived(late=True):
            return opening.model_copy(update={"late": False})
        case ModelReplied():
            return opening.model_copy(update={"judged": {}})
        case ApprovalResolved():
            return opening.model_copy(update={"judged": None})
        case ModelFailed():
            return opening.model_copy(update={"retry_at": None})
        case ToolFailed():
            return opening.model_copy(update={"retry_at": None, "degraded": False, "held": False})
        case _:
            return opening


def opening_of(command: SessionEvent, state: SessionState) -> SessionEvent | None:
    """Return the first event of the step of *command*; None if the command changes nothing."""
    match command.type:
        case "ModelReplied" | "ModelFailed":
            return _model_outcome(command, state)
        case "ToolReturned" | "ToolAsked" | "ToolDeferred" | "ToolFailed" | "ToolInDoubt":
            return _tool_outcome(command, state)
        case "MessageReceived":
            return _message(command, state)
        case "OutcomeCameLate" | "SessionForked":
            return command
        case (
            "ToolStarted"
            | "CallDelegated"
            | "MessageAwaited"
            | "ToolSkipped"
            | "ModelStarted"
            | "ApprovalRequested"
            | "ApprovalResolved"
        ):
            lives = state.status in LIVE and not state.poisoned
            if not lives or not _may(command, state):
                return None
            return judge_edit(state, command) if command.type == "ApprovalResolved" else command
        case "SessionStarted":
            return command if state.status is Status.CREATED else None
        case _ if state.status not in LIVE:
            return None
        case "SessionTakenOver":
            return command if state.status in DRIVEN else None
        case "PeopleNotified" | "SandboxAttached":
            return command
        case "ReservationClosed":
            return command if closes(state, command) else None
        case "SessionWaiting":
            return _waiting(command, state)
        case "SessionFailed" | "SessionContinued":
            return command
        case "RunClaimed":
            return command if state.queued and state.stop is None else None
        case "ToolReconciled":
            return None if state.poisoned else _reconciled(command, state)
        case _:
            return None


def _waiting(command: SessionWaiting, state: SessionState) -> SessionEvent | None:
    """Return the event of a wait for a runner or breaker, if the effect still needs it."""
    match command.kind:
        case "runner" | "sandbox":
            return _unreachable(command, state)
        case "budget":
            model = state.turn.model
            return command if model is not None and may_ask(state, model) else None
        case "breaker":
            return _blocked_by_breaker(command, state)
        case "task":
            call = state.call(command.effects[0])
            return command if call is not None and call.phase == "deferred" else None
        case _:
            return command


def _may(
    command: ToolStarted
    | CallDelegated
    | MessageAwaited
    | ToolSkipped
    | ModelStarted
    | ApprovalRequested
    | ApprovalResolved,
    state: SessionState,
) -> bool:
    """Whether *command*, a start, question or answer, fits the state of its effect."""
    match command.type:
        case "ToolStarted":
            call = state.call(command.effect)
            return (
                call is not None and command.attempt == call.attempt + 1 and may_start(state, call)
            )
        case "CallDelegated" | "ToolSkipped":
            call = state.call(command.effect)
            return call is not None and call.delegates and may_start(state, call)
        case "MessageAwaited":
            call = state.call(command.effect)
            return call is not None and call.message == command.name and may_start(state, call)
        case "ModelStarted":
            return _may_ask_model(command, state)
        case "ApprovalRequested":
            call = state.call(command.effect)
            return call is not None and command.question == asks(state, call)
        case "ApprovalResolved":
            call = state.call_of_approval(command.approval)
            if call is None or call.phase not in ("requested", "asked", "deferred", "in_doubt"):
                return False
            return call.asking or command.verdict == "superseded"


def _may_ask_model(command: ModelStarted, state: SessionState) -> bool:
    model = state.turn.model
    if model is None or not may_ask(state, model):
        return False
    if state.limited and command.grant is None:
        return False  # I8: nothing starts without a reservation
    return (model.effect, model.attempt) == (command.effect, command.attempt)


def _message(command: MessageReceived, state: SessionState) -> SessionEvent | None:
    """Return the fact that accepts or refuses a message; None for a repeated message (I7)."""
    if command.inbox_version <= state.inbox_read:
        return None
    refused = _refusal(command, state)
    if refused is None:
        late = is_late(state, command.message)
        return command.model_copy(update={"late": True}) if late else command
    return MessageRefused(
        inbox_version=command.inbox_version,
        recorded_at=command.recorded_at,
        message=command.message,
        gate_answer=command.gate_answer,
        refusal=refused,
    )


def _refusal(command: MessageReceived, state: SessionState) -> Refusal | None:
    said = command.message
    if state.setup is not None and (refused := unheard(state.agent, said)) is not None:
        return refused
    if state.finished:
        return Refusal(code="session_ended", status=state.status)
    if state.status is Status.CREATED:
        return Refusal(code="never_started")
    if isinstance(command.message, StartAsked):
        return Refusal(code="started_before")
    if isinstance(command.message, DecisionGiven):
        answer = command.gate_answer
        return Refusal(code="no_such_approval") if answer is None else answer.refusal
    kept = ChildAsked | ChildEnded | RunnerGone
    if state.stop is not None and not isinstance(command.message, kept):
        return Refusal(code="session_stopping")
    if isinstance(command.message, RaiseAsked):
        return refusal(state.limit_state.limits, command.message)
    return None


def _model_outcome(command: ModelReplied | ModelFailed, state: SessionState) -> SessionEvent:
    model = state.turn.model
    if (
        model is None
        or model.phase != "started"
        or (model.effect, model.attempt) != (command.effect, command.attempt)
    ):
        return _late(command)
    if command.type == "ModelReplied":
        return judge_reply(state, command)
    again = command.failed_at if command.kind == NO_ANSWER and not model.silent else None
    if command.kind in TRANSIENT and command.failed_at is not None:
        again = retry_at(
            answering(state.agent, model.fallback).retry,
            key=f"{state.stream}/{command.effect}",
            failures=model.failures + 1,
            failed_at=command.failed_at,
            since=model.failing_since,
            retry_after=command.retry_after,
        )
    return command.model_copy(update={"retry_at": again})


def _tool_outcome(
    command: ToolReturned | ToolAsked | ToolDeferred | ToolFailed | ToolInDoubt,
    state: SessionState,
) -> SessionEvent | None:
    call = state.call(command.effect) if state.status in LIVE else None
    runs = call is not None and call.phase in ("started", "deferred")
    if call is None or not runs or call.attempt != command.attempt:
        return _late(command) if isinstance(command, ToolReturned | ToolFailed) else None
    if command.type == "ToolAsked":
        return judge_held(state, call, command)
    if command.type != "ToolFailed":
        return command
    unknown = command.kind == "lost" or (state.stop is not None and command.kind in _ENDED_BY_US)
    if unknown and not call.repeatable:
        cause = Cause(code="tool_failed", failure=command.kind, message=command.message)
        return ToolInDoubt(effect=command.effect, attempt=command.attempt, cause=cause)
    if command.kind in LOST:
        again = lost_retry_at(state, call, command.failed_at)
    else:
        again = retried_at(state, call, command)
    degraded = again is None and degrades(state, call, command.kind)
    held = again is None and not degraded and command.kind in HELD
    update = {"retry_at": command.failed_at if held else again, "degraded": degraded, "held": held}
    return command.model_copy(update=update)


def _unreachable(command: SessionWaiting, state: SessionState) -> SessionEvent:
    """Return the wait for a runner; None if this wait already ended without a runner (I14)."""
    affected = [c for c in state.open_calls if c.effect in command.effects or not command.effects]
    for call in affected:
        if call.reach is not None and call.reach.phase == "last_try":
            return _is_rejected(state, call, command.cause)
    return command.model_copy(update={"effects": tuple(call.effect for call in affected)})


def _blocked_by_breaker(command: SessionWaiting, state: SessionState) -> SessionEvent | None:
    """Return the event that a breaker blocks an effect; None if the effect cannot start anyway."""
    model = state.turn.model
    ready = {call.effect for call in state.open_calls if may_start(state, call)}
    if model is not None and may_ask(state, model):
        ready.add(model.effect)
    kept = tuple(effect for effect in command.effects if effect in ready)
    if not kept or command.deadline_at is None:
        return None
    return command.model_copy(update={"effects": kept})


def _is_rejected(state: SessionState, call: Call, cause: Cause) -> SessionEvent:
    assert call.reach is not None, "somebody waited for a runner"
    if call.phase == "started":
        return fail_lost_call(state, call, cause=cause, at=call.reach.until)
    if call.phase == "in_doubt":
        return ToolReconciled(effect=call.effect, outcome="unknown", by="tool")
    return SessionWaiting(kind="operator", cause=cause)


def _reconciled(command: ToolReconciled, state: SessionState) -> SessionEvent | None:
    """Return the event with the outcome that the tool found for a call in doubt."""
    call = state.call(command.effect)
    if call is None or call.phase != "in_doubt" or call.asking:
        return None
    if command.outcome == "unknown":
        return command.model_copy(update={"output": ""})
    return command


def _late(
    command: ModelReplied | ModelFailed | ToolReturned | ToolFailed,
) -> OutcomeCameLate:
    return OutcomeCameLate(effect=command.effect, attempt=command.attempt, outcome=command.type)
