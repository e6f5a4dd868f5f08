"""What each fact of a session changes; total, and cannot fail."""

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from cueline.deciders import prompt
from cueline.deciders.approval import judge
from cueline.deciders.retry import FATAL_MODEL
from cueline.deciders.session.state import (
    MAX_TAKEOVERS,
    Answer,
    Approval,
    Call,
    Mail,
    Marks,
    ModelCall,
    Ruling,
    SessionState,
    Setup,
    Status,
    Stop,
    Turn,
    Wait,
)
from cueline.events.inbox import (
    DecisionGiven,
    MessageSent,
    PauseAsked,
    ResumeAsked,
    StartAsked,
    StopAsked,
)
from cueline.events.message import TextBlock, ToolCall
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    OutcomeCameLate,
    PromptPrefixChanged,
    SessionCompleted,
    SessionContinued,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)

REST_SECONDS = 2.0
"""A shorter wait is `running`."""
_NO_TIME = 0.0
_LONGEST_ERROR = 500
_TIMED_OUT = "Action rejected: approval timeout"
_REJECTED = "Action rejected by human operator"


def evolve(state: SessionState, event: SessionEvent) -> SessionState:
    """Say what *event* changed."""
    match event:
        case ModelRequested():
            return _model_requested(state, event)
        case ModelStarted():
            return _with_model(state, phase="started")
        case ModelReplied():
            return _model_replied(state, event)
        case ToolStarted():
            return _tool_started(state, event)
        case ToolReturned() | ToolSkipped():
            return _closed(state, event)
        case ToolFailed():
            return _tool_failed(state, event)
        case MessageReceived():
            answered = replace(_answered(state, event), inbox_read=event.inbox_version)
            return _received(answered, event)
        case MessageRefused():
            return replace(state, inbox_read=event.inbox_version)
        case SessionContinued(at=at):
            return _continued(state, at)
        case SessionWaiting():
            return _waiting(state, event)
        case ModelFailed():
            return _model_failed(state, event)
        case ToolInDoubt(effect=effect):
            return _with_call(state, effect, phase="in_doubt", approval=None, unclear=False)
        case ToolReconciled():
            return _reconciled(state, event)
        case ApprovalRequested():
            return _approval_requested(state, event)
        case ApprovalResolved():
            return _approval_resolved(state, event)
        case SessionIdle():
            idle = replace(state.turn, replied=False, answer="")
            return replace(state, status=Status.IDLE, turn=idle, waiting=None)
        case SessionTakenOver():
            return _taken_over(state, event)
        case SessionStarted():
            return _started(state, event)
        case SessionForked():
            return _forked(state, event)
        case SessionCompleted():
            return _ended(state, Status.COMPLETED)
        case SessionFailed():
            return _ended(state, Status.FAILED)
        case SessionStopped():
            return _ended(state, Status.STOPPED)
        case OutcomeCameLate() | PromptPrefixChanged():
            return state
        case _:
            assert_never(event)


def _with_call(state: SessionState, effect: str, **changes: object) -> SessionState:
    calls = tuple(
        replace(call, **changes) if call.effect == effect else call  # type: ignore[arg-type]  # the fields of Call, checked by its callers' tests
        for call in state.turn.calls
    )
    return replace(state, turn=replace(state.turn, calls=calls))


def _with_model(state: SessionState, **changes: object) -> SessionState:
    if state.turn.model is None:
        return state
    model = replace(state.turn.model, **changes)  # type: ignore[arg-type]  # the fields of ModelCall
    return replace(state, turn=replace(state.turn, model=model))


def _started(state: SessionState, event: SessionStarted) -> SessionState:
    fingerprints = tuple(map(prompt.fingerprint, prompt.opening_messages(event)))
    return replace(
        state,
        status=Status.RUNNING,
        setup=Setup(
            agent=event.agent,
            open=event.open,
            attached=event.attached,
            tools={tool.name: tool for tool in event.agent.tools},
        ),
        epoch=event.epoch,
        mail=(Mail(1, "note", fingerprints),) if fingerprints else (),
        marks=Marks(digest=prompt.opening_digest(event.agent)),
        inbox_read=1,
    )


def _forked(state: SessionState, event: SessionForked) -> SessionState:
    """Nothing in flight crosses a fork."""
    told = state
    for call in state.open_calls:
        told = _told(told, call.effect, prompt.FORKED_AWAY, failed=True)
    fingerprints = tuple(map(prompt.fingerprint, prompt.opening_messages(event)))
    calls = tuple(replace(call, phase="closed", approval=None) for call in state.turn.calls)
    return replace(
        state,
        status=Status.RUNNING,
        setup=Setup(
            agent=event.agent,
            open=event.open,
            attached=event.attached,
            tools={tool.name: tool for tool in event.agent.tools},
        ),
        epoch=event.epoch,
        turn=replace(state.turn, model=None, calls=calls, replied=True, since_user=0),
        mail=(Mail(1, "note", fingerprints),) if fingerprints else (),
        marks=told.marks,
        inbox_read=1,
        hold=None,
        waiting=None,
        runner_wait=None,
        stop=None,
        takeovers=0,
    )


def _model_requested(state: SessionState, event: ModelRequested) -> SessionState:
    turn = state.turn
    again = turn.model is not None and turn.model.effect == event.effect
    told = set(event.messages)
    since = 0 if told else turn.since_user
    model = ModelCall(
        event.effect,
        event.attempt,
        "requested",
        failures=turn.model.failures if again and turn.model else 0,
    )
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.RUNNING,
        turn=Turn(
            number=turn.number if again else turn.number + 1,
            since_user=since if again else since + 1,
            model=model,
        ),
        mail=tuple(mail for mail in state.mail if mail.inbox_version not in told),
        marks=Marks(digest=event.digest, requested=event.digest),
        waiting=None,
    )


def _model_replied(state: SessionState, event: ModelReplied) -> SessionState:
    said = prompt.fingerprint(prompt.assistant_message(event))
    number = event.effect.partition(".")[0]
    calls = tuple(
        _requested_call(state, f"{number}.{index}", call) for index, call in enumerate(event.calls)
    )
    answer = ""
    if not calls:
        answer = "\n".join(block.text for block in event.content if isinstance(block, TextBlock))
    return replace(
        state,
        turn=replace(state.turn, model=None, calls=calls, replied=True, answer=answer),
        marks=replace(state.marks, digest=prompt.chained(state.marks.digest, said)),
        takeovers=0,
    )


def _requested_call(state: SessionState, effect: str, call: ToolCall) -> Call:
    tool = state.setup.tools.get(call.name) if state.setup else None
    problem = call.problem
    if tool is None:
        known = ", ".join(sorted(state.setup.tools)) if state.setup else ""
        problem = f"There is no tool {call.name!r}; the tools are: {known or 'none'}."
    elif problem is None and call.malformed is not None:
        problem = "The arguments were not a JSON object; nothing was run."
    return Call(
        effect=effect,
        id=call.id,
        tool=call.name,
        declared=tool.declared if tool else "nothing",
        gated=tool is not None and judge(state.agent.policy, tool).asks,
        digest=call_digest(state, effect, call),
        problem=problem,
    )


def call_digest(state: SessionState, effect: str, call: ToolCall) -> str:
    """Return the digest of exactly what would run (I9)."""
    tool = state.setup.tools.get(call.name) if state.setup else None
    workspace = state.agent.workspace
    return order_digest(
        session=state.stream,
        effect=effect,
        tool=call.name,
        tool_digest=tool.digest if tool else "",
        arguments=call.arguments,
        workspace=(workspace.machine, workspace.path) if workspace else None,
    )


def order_digest(
    *,
    session: str,
    effect: str,
    tool: str,
    tool_digest: str,
    arguments: object,
    workspace: tuple[str, str] | None,
) -> str:
    """Return the digest that a grant binds to; the runner computes it again."""
    whole = [session, effect, tool, tool_digest, arguments, workspace]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _tool_started(state: SessionState, event: ToolStarted) -> SessionState:
    return replace(
        _with_call(
            state,
            event.effect,
            phase="started",
            attempt=event.attempt,
            runner=event.runner,
            retry_at=None,
            rests=False,
        ),
        runner_wait=None,
    )


def _told(state: SessionState, effect: str, text: str, *, failed: bool) -> SessionState:
    """Note what the model will be told of a call that is over."""
    call = state.call(effect)
    message = prompt.tool_message(call.id if call else "", text, failed=failed)
    results = (*state.marks.results, (effect, prompt.fingerprint(message)))
    return replace(state, marks=replace(state.marks, results=results))


def _closed(
    state: SessionState, event: ToolReturned | ToolSkipped | ToolFailed | ToolReconciled
) -> SessionState:
    result = prompt.result_of(event)
    call = state.call(event.effect)
    if result is None or call is None or call.phase == "closed":
        return state
    told = _told(state, event.effect, result[0], failed=result[1])
    return replace(
        _with_call(told, event.effect, phase="closed", approval=None, retry_at=None),
        takeovers=0 if isinstance(event, ToolReturned | ToolFailed) else state.takeovers,
        runner_wait=None,
    )


def _tool_failed(state: SessionState, event: ToolFailed) -> SessionState:
    call = state.call(event.effect)
    if event.retry_at is None or call is None:
        return _closed(state, event)
    at_once = event.failed_at is not None and event.retry_at <= event.failed_at
    return _with_call(
        state,
        event.effect,
        phase="requested" if at_once else "retry",
        failures=call.failures + 1,
        retry_at=None if at_once else event.retry_at,
        rests=_rests(event.failed_at, event.retry_at),
    )


def _rests(failed_at: datetime | None, retry_at: datetime) -> bool:
    seconds = (retry_at - failed_at).total_seconds() if failed_at else _NO_TIME
    return seconds >= REST_SECONDS


def _model_failed(state: SessionState, event: ModelFailed) -> SessionState:
    model = state.turn.model
    if model is None:
        return state
    counted = event.kind not in ("lost", "cancelled")
    failed = replace(
        model,
        phase="retry" if event.retry_at or not counted else "given_up",
        failures=model.failures + counted,
        retry_at=event.retry_at,
        rests=event.retry_at is not None and _rests(event.failed_at, event.retry_at),
        error=f"{event.kind}: {event.message}"[:_LONGEST_ERROR],
        fatal=event.kind in FATAL_MODEL,
    )
    return replace(state, turn=replace(state.turn, model=failed))


def _reconciled(state: SessionState, event: ToolReconciled) -> SessionState:
    if event.outcome == "did_not_happen":
        # What a person or the tool itself says counts as leave to run it again.
        return _with_call(state, event.effect, phase="requested", gated=False, ruling=None)
    if not event.output:
        return _with_call(state, event.effect, unclear=True)
    return _closed(state, event)


def _approval_requested(state: SessionState, event: ApprovalRequested) -> SessionState:
    call = state.call(event.effect)
    approval = Approval(event.approval, event.digest, event.deadline_at, event.question)
    asked = call.asked + 1 if call else 1
    return _with_call(state, event.effect, approval=approval, asked=asked)


def _approval_resolved(state: SessionState, event: ApprovalResolved) -> SessionState:
    call = state.call_of_approval(event.approval)
    if call is None or call.approval is None:
        return state
    question = call.approval.question
    closed = _with_call(state, call.effect, approval=None)
    match event.verdict, question:
        case "granted", "may_it_run":
            granted = replace(call.approval, granted=event.by, answer=None)
            return _with_call(state, call.effect, approval=granted)
        case "granted" | "denied", "did_it_happen":
            ruling = Ruling(happened=event.verdict == "granted", by=event.by)
            return _with_call(closed, call.effect, ruling=ruling)
        case "denied", _:
            note = f": {event.note}" if event.note else ""
            return _with_call(closed, call.effect, problem=f"{_REJECTED}{note}")
        case "expired", _:
            held = replace(closed, hold=state.hold or "approval expired")
            if question == "did_it_happen":
                return held
            return _with_call(held, call.effect, problem=_TIMED_OUT)
        case _:
            return closed


def _received(state: SessionState, event: MessageReceived) -> SessionState:
    match event.message:
        case MessageSent(lane=lane, text=text):
            said = prompt.fingerprint(prompt.user_message(text))
            mail = (*state.mail, Mail(event.inbox_version, lane, (said,)))
            # Only a limit is lifted by a message; any other pause ends with a resume.
            lifted = state.hold is not None and state.hold.startswith("limit")
            return replace(state, mail=mail, hold=None if lifted else state.hold)
        case PauseAsked(why=why):
            return replace(state, hold=state.hold or why)
        case ResumeAsked():
            return _resumed(state)
        case StopAsked(reason=reason):
            return replace(state, status=Status.STOPPING, stop=Stop("user", reason), hold=None)
        case DecisionGiven() | StartAsked():
            return state
        case _:
            assert_never(event.message)


def _answered(state: SessionState, event: MessageReceived) -> SessionState:
    """Note the gate's verdict, until it is resolved in a fact of its own."""
    gate = event.gate_answer
    if gate is None or gate.verdict is None:
        return state
    call = state.call_of_approval(gate.approval)
    if call is None or call.approval is None:
        return state
    answer = Answer(gate.verdict, gate.by, gate.note)
    return _with_call(state, call.effect, approval=replace(call.approval, answer=answer))


def _resumed(state: SessionState) -> SessionState:
    turn = replace(state.turn, since_user=0)
    if turn.model is not None and turn.model.phase in ("given_up", "retry"):
        turn = replace(turn, model=replace(turn.model, phase="retry", failures=0, retry_at=None))
    return replace(state, hold=None, turn=turn, takeovers=0)


def _continued(state: SessionState, at: datetime | None) -> SessionState:
    """Leave the wait; what is due at *at* may be tried again."""
    turn = state.turn
    model = turn.model
    if model is not None and at is not None and model.retry_at is not None and model.retry_at <= at:
        model = replace(model, retry_at=None)
    calls = tuple(
        replace(call, phase="requested", retry_at=None, rests=False)
        if call.phase == "retry" and (call.retry_at is None or (at and call.retry_at <= at))
        else call
        for call in turn.calls
    )
    expired = at is not None and state.runner_wait is not None and state.runner_wait <= at
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.RUNNING,
        turn=replace(turn, model=model, calls=calls),
        waiting=None,
        runner_wait=None if expired else state.runner_wait,
    )


def _waiting(state: SessionState, event: SessionWaiting) -> SessionState:
    return replace(
        state,
        status=Status.STOPPING if state.stop else Status.WAITING,
        waiting=Wait(event.kind, event.why, event.deadline_at),
        hold=state.hold or event.why if event.kind == "operator" else state.hold,
        runner_wait=event.deadline_at if event.kind == "runner" else state.runner_wait,
    )


def _taken_over(state: SessionState, event: SessionTakenOver) -> SessionState:
    model = state.turn.model
    if model is not None and model.phase == "started":
        model = replace(model, phase="retry", retry_at=None, rests=False)
    takeovers = state.takeovers + 1
    poison = f"error: its host died {takeovers} times in it"
    return replace(
        state,
        epoch=event.epoch,
        turn=replace(state.turn, model=model),
        takeovers=takeovers,
        hold=(state.hold or poison) if takeovers >= MAX_TAKEOVERS else state.hold,
    )


def _ended(state: SessionState, status: Status) -> SessionState:
    over = replace(state.turn, model=None, calls=(), replied=False, answer="")
    return replace(state, status=status, turn=over, mail=(), waiting=None, hold=None, stop=None)
