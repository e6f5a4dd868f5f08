"""Applies facts to the row of their session."""

import json

from cueline.events.agent import AgentSpec, ModelChoice, each_model
from cueline.events.codes import Cause
from cueline.events.fact import Fact
from cueline.events.inbox import RunnerGone, StartAsked, StopAsked
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    MessageRefused,
    ModelRequested,
    ModelStarted,
    RunClaimed,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolReconciled,
    ToolReturned,
    ToolStarted,
)
from cueline.events.start import Run
from cueline.events.status import DRIVEN, TERMINAL, is_pause
from cueline.events.store import RecordedEvent, to_us
from cueline.projections.read_model import Row


def fold_message(row: Row, recorded: RecordedEvent, fact: object) -> None:
    """Apply one event of the session's inbox."""
    row["inbox_length"] = recorded.version
    if recorded.type == "StartAsked":
        row["started_by"] = row["started_by"] or recorded.actor
    if isinstance(fact, StartAsked) and row["started_us"] is None:
        _describe(row, fact.agent)
        row["goal"], row["open"], row["attached"] = fact.goal, fact.open, fact.attached
        row["labels_json"] = json.dumps(fact.labels)
        row["parameters_json"] = json.dumps(fact.parameters)
        if fact.fork_of is not None:
            row["parent"], row["parent_version"] = fact.fork_of.stream, fact.fork_of.version
        _place(row, fact.parent, fact.root)
        _run(row, fact.run)
        if fact.run is not None and fact.schedule is None:
            row["queue_position"] = recorded.position
        if fact.schedule is not None:
            every = fact.schedule.every_seconds or 0
            row["wait_kind"], row["deadline_us"] = "time", to_us(fact.schedule.at)
            cause = Cause(code="scheduled", every_seconds=every)
            row["wait_cause"] = cause.model_dump_json()
    if isinstance(fact, RunnerGone) and fact.graceful and fact.runner == row["claimed_by"]:
        row["claimed_by"] = None  # even while no process reads the message


def fold_session(row: Row, recorded: RecordedEvent, fact: object) -> None:
    """Apply one event of the session's own stream."""
    row["version"] = recorded.version
    row["updated_us"] = recorded.recorded_us
    row["epoch"] = recorded.epoch
    match fact:
        case ModelStarted() | ToolStarted() | ToolReturned():
            pass  # the most frequent ones; effects hold their content
        case ModelRequested() | SessionContinued() | RunClaimed():
            _go_on(row, fact, recorded.position)
        case MessageReceived(inbox_version=read, message=message):
            row["inbox_read"] = max(row["inbox_read"], read)
            if isinstance(message, StopAsked):
                _become(row, "stopping")
        case MessageRefused(inbox_version=read):
            row["inbox_read"] = max(row["inbox_read"], read)
        case SessionWaiting():
            _wait(row, fact)
        case SessionIdle():
            _idle(row, fact)
        case Fact():
            _fold_seldom(row, recorded, fact)


def _fold_seldom(row: Row, recorded: RecordedEvent, fact: Fact) -> None:
    match fact:
        case ToolReconciled():
            row["reconciled"] += 1
        case SessionTakenOver():
            _become(row, "running")
        case AgentChanged(model=ModelChoice(provider=provider, model=model)):
            row["provider"], row["model"] = provider, model
            others = json.loads(row["models_json"])[1:]
            row["models_json"] = json.dumps([(provider, model), *others]) if others else "[]"
        case SessionStarted() | SessionForked():
            _start(row, recorded, fact)
        case SessionCompleted() | SessionFailed() | SessionStopped() if (
            row["status"] not in TERMINAL
        ):
            _end(row, fact)


def settle_due(row: Row) -> None:
    """Set the time from which the session needs a host."""
    unread = row["inbox_length"] > row["inbox_read"]
    driven = row["status"] in DRIVEN and row["wait_kind"] is None
    row["due_us"] = 0 if unread or driven else row["deadline_us"]


def _become(row: Row, status: str) -> None:
    """End the wait and set *status*; a stopping session stays stopping."""
    if row["status"] in TERMINAL:
        return
    goes_on = row["status"] == "stopping" and status in {"running", "waiting"}
    row["status"] = "stopping" if goes_on else status
    row["wait_kind"] = row["wait_cause"] = row["deadline_us"] = None
    row["paused"] = False


def _go_on(row: Row, fact: ModelRequested | SessionContinued | RunClaimed, position: int) -> None:
    if row["wait_kind"] == "time" and row["blueprint"] and row["queue_position"] is None:
        row["queue_position"] = position
    _become(row, "running")
    if isinstance(fact, RunClaimed):
        row["claimed_by"] = fact.runner
    if isinstance(fact, ModelRequested) and row["models_json"] != "[]":
        row["provider"], row["model"] = json.loads(row["models_json"])[fact.fallback]


def _wait(row: Row, fact: SessionWaiting) -> None:
    _become(row, "waiting")
    if row["status"] not in TERMINAL:
        row["wait_kind"], row["wait_cause"] = fact.kind, fact.cause.model_dump_json()
        row["paused"] = row["status"] == "waiting" and is_pause(fact.kind, exhausted=fact.exhausted)
        if fact.cause.code == "queued":
            row["claimed_by"] = None
        row["deadline_us"] = None if fact.deadline_at is None else to_us(fact.deadline_at)


def _idle(row: Row, fact: SessionIdle) -> None:
    if row["status"] not in TERMINAL:
        _become(row, "idle")
        row["result"], row["partial"] = fact.result, fact.partial


def _start(row: Row, recorded: RecordedEvent, fact: SessionStarted | SessionForked) -> None:
    _describe(row, fact.agent)
    row["started_us"] = recorded.recorded_us
    row["goal"], row["open"], row["attached"] = fact.goal, fact.open, fact.attached
    row["epoch"] = recorded.epoch
    row["inbox_read"] = 1
    if isinstance(fact, SessionStarted):
        row["labels_json"] = json.dumps(fact.labels)
        row["parameters_json"] = json.dumps(fact.parameters)
        _place(row, fact.parent, fact.root)
        _run(row, fact.run)
    else:
        row["parent"], row["parent_version"] = fact.parent, fact.version
    _become(row, "running")


def _run(row: Row, run: Run | None) -> None:
    """Set the blueprint of the run."""
    if run is not None:
        row["blueprint"], row["retry_of"] = run.blueprint, run.retry_of or None


def _place(row: Row, parent: str | None, root: str | None) -> None:
    """Set the session's place in its tree."""
    row["child_of"], row["root"] = parent, root or row["stream"]


def _end(row: Row, fact: SessionCompleted | SessionFailed | SessionStopped) -> None:
    row["queue_position"] = None
    match fact:
        case SessionCompleted():
            _become(row, "completed")
            row["result"], row["partial"] = fact.result, fact.partial
        case SessionFailed(kind=kind, recoverable=recoverable):
            _become(row, "failed")
            row["error_kind"], row["recoverable"] = kind, recoverable
            row["error"] = fact.message or fact.approval
        case SessionStopped(by=by, code=code, reason=reason):
            _become(row, "stopped")
            row["error_kind"], row["error"], row["stopped_by"] = code, reason, by


def _describe(row: Row, agent: AgentSpec) -> None:
    row["agent"], row["provider"], row["model"] = agent.name, agent.provider, agent.model
    if agent.fallback:
        row["models_json"] = json.dumps([(each.provider, each.model) for each in each_model(agent)])
    row["tools_json"] = json.dumps({tool.name: tool.declared for tool in agent.tools})
