"""What a session may do: each step is one outside fact and what follows from it.

The commands of a session are the facts that they would record: a reply of the
model, a message from the inbox, a call that a runner is about to be given. So
a step's first event holds the whole command, and deciding again on the state
before it gives the same step (I10); `command_of` gives the command back.
"""

from datetime import datetime

from cueline.deciders.approval import judge
from cueline.deciders.retry import LOST, TRANSIENT_MODEL, retry_at
from cueline.deciders.session.evolve import evolve
from cueline.deciders.session.following import following, startable
from cueline.deciders.session.state import Call, Question, SessionState, Status
from cueline.events.inbox import DecisionGiven, StartAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelStarted,
    OutcomeCameLate,
    SessionContinued,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionStarted,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolStarted,
)


def decide(command: SessionEvent, state: SessionState) -> list[SessionEvent]:
    """Say what *command*, an outside fact, makes happen; `[]` when it changes nothing."""
    opening = _opening(command, state)
    if opening is None:
        return []
    after = evolve(state, opening)
    facts = following(after)
    if isinstance(opening, SessionContinued) and not facts and after == state:
        return []
    return [opening, *facts]


def command_of(opening: SessionEvent) -> SessionEvent:
    """Return the command that a step's first event holds."""
    match opening:
        case MessageRefused():
            return MessageReceived(
                inbox_version=opening.inbox_version,
                recorded_at=opening.recorded_at,
                message=opening.message,
                gate_answer=opening.gate_answer,
            )
        case ModelFailed() | ToolFailed():
            return opening.model_copy(update={"retry_at": None})
        case _:
            return opening


def _opening(command: SessionEvent, state: SessionState) -> SessionEvent | None:
    match command:
        case ModelReplied() | ModelFailed():
            return _model_outcome(command, state)
        case ToolReturned() | ToolFailed() | ToolInDoubt():
            return _tool_outcome(command, state)
        case MessageReceived():
            return _message(command, state)
        case OutcomeCameLate():
            return command
        case SessionStarted():
            return command if state.status is Status.CREATED else None
        case SessionForked():
            return command
        case _ if state.finished or state.status is Status.CREATED:
            return None
        case SessionTakenOver() | SessionFailed() | SessionWaiting():
            return command
        case SessionContinued():
            return command
        case _ if state.poisoned:
            return None
        case _:
            return command if _may(command, state) else None


def _may(command: SessionEvent, state: SessionState) -> bool:
    """Whether a start, a question or an answer fits the effect it names."""
    match command:
        case ModelStarted(effect=effect, attempt=attempt):
            model = state.turn.model
            free = not state.hold and not state.stop
            return (
                free
                and model is not None
                and (model.effect, model.attempt, model.phase)
                == (
                    effect,
                    attempt,
                    "requested",
                )
            )
        case ToolStarted(effect=effect, attempt=attempt):
            call = state.call(effect)
            return call is not None and attempt == call.attempt + 1 and may_start(state, call)
        case ToolReconciled(effect=effect):
            call = state.call(effect)
            return call is not None and call.phase == "in_doubt"
        case ApprovalRequested(effect=effect, question=question):
            call = state.call(effect)
            return call is not None and question == asks(state, call)
        case ApprovalResolved(approval=approval):
            return state.call_of_approval(approval) is not None
        case _:
            return False


def may_start(state: SessionState, call: Call) -> bool:
    """Whether the call may be given to a runner now."""
    free = not state.hold and not state.stop and not state.steered
    fit = call.phase == "requested" and call.allowed and call.problem is None
    return free and fit and startable(state, call)


def asks(state: SessionState, call: Call) -> Question | None:
    """Return the question that a person has to be asked about the call, if any."""
    if call.approval is not None or call.problem is not None or state.hold or state.stop:
        return None
    if call.phase == "requested" and call.gated and not state.steered:
        return "may_it_run"
    clear = call.declared == "reconcile" and not call.unclear
    if call.phase == "in_doubt" and not clear and call.ruling is None:
        return "did_it_happen"
    return None


def allowing_rule(state: SessionState, call: Call) -> str:
    """Return the rule, or whose grant, lets the call run."""
    if call.approval is not None and call.approval.granted is not None:
        return f"granted by {call.approval.granted}"
    assert state.setup is not None
    return judge(state.agent.policy, state.setup.tools[call.tool]).rule


def _message(command: MessageReceived, state: SessionState) -> SessionEvent | None:
    """A message always yields a fact (I7), unless it was read before."""
    if command.inbox_version <= state.inbox_read:
        return None
    reason = _refusal(command, state)
    if reason is None:
        return command
    return MessageRefused(
        inbox_version=command.inbox_version,
        recorded_at=command.recorded_at,
        message=command.message,
        gate_answer=command.gate_answer,
        reason=reason,
    )


def _refusal(command: MessageReceived, state: SessionState) -> str | None:
    if state.finished:
        return f"the session has ended: {state.status}"
    if isinstance(command.message, StartAsked):
        return "the session was started before"
    if isinstance(command.message, DecisionGiven):
        answer = command.gate_answer
        if answer is None:
            return "there is no such approval"
        return None if answer.accepted else answer.reason
    return None


def _model_outcome(command: ModelReplied | ModelFailed, state: SessionState) -> SessionEvent | None:
    model = state.turn.model
    expected = model is not None and model.phase == "started"
    if (
        model is None
        or not expected
        or (model.effect, model.attempt)
        != (
            command.effect,
            command.attempt,
        )
    ):
        return _late(command)
    if isinstance(command, ModelReplied):
        return command
    if command.kind not in TRANSIENT_MODEL or command.failed_at is None:
        return command
    again = retry_at(
        state.agent.retry,
        key=f"{state.stream}/{command.effect}",
        failures=model.failures + 1,
        failed_at=command.failed_at,
        retry_after=command.retry_after,
    )
    return command.model_copy(update={"retry_at": again})


def _tool_outcome(
    command: ToolReturned | ToolFailed | ToolInDoubt, state: SessionState
) -> SessionEvent | None:
    call = state.call(command.effect)
    if call is None or call.phase != "started" or call.attempt != command.attempt:
        return None if isinstance(command, ToolInDoubt) else _late(command)
    if not isinstance(command, ToolFailed):
        return command
    unknown = command.kind == "lost" or (command.kind == "cancelled" and state.stop is not None)
    if unknown and not call.repeatable:
        return ToolInDoubt(effect=command.effect, attempt=command.attempt, evidence=command.message)
    if command.kind in LOST:
        return command.model_copy(update={"retry_at": _at_once(state, call, command.failed_at)})
    return command


def _at_once(state: SessionState, call: Call, failed_at: datetime | None) -> datetime | None:
    """A lost attempt is made again at once, but not for ever."""
    if call.failures >= state.agent.retry.max_retries or failed_at is None:
        return None
    return failed_at


def _late(
    command: ModelReplied | ModelFailed | ToolReturned | ToolFailed,
) -> OutcomeCameLate:
    return OutcomeCameLate(effect=command.effect, attempt=command.attempt, outcome=command.type)
