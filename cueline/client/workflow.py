"""Workflows: their plans, and how far a session is with its plan."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

from cueline.agents.agent import Agent
from cueline.agents.workflow import Workflow
from cueline.client.document import document
from cueline.client.history import History
from cueline.config.problem import SettingProblem
from cueline.errors import ConfigError, RejectedError, ToolImportError
from cueline.events.agent import AgentSpec
from cueline.events.session import (
    CallsAdded,
    MessageAwaited,
    SessionStarted,
)
from cueline.events.stream import shown
from cueline.projections.calls import OVER, CallChange, changes_of

_STATUS: Final = {"completed": "completed", "failed": "failed", "stopped": "failed"}
_HELD: Final = frozenset({"paused", "idle"})
_ENDS: Final = OVER | {"retry"}
_OF_PEOPLE: Final = frozenset({"operator", "approval", "message", "budget"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StepState:
    """One step of a session's plan."""

    name: str
    status: str = "pending"
    """`pending`, `running`, `completed`, `failed` or `skipped`."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    calls: int = 0
    """The number of calls that have begun; with `for_each`, one for each item."""
    value: Any = None
    error_code: str = ""
    error: str = ""
    children: tuple[str, ...] = ()
    """The ids of its child sessions."""

    @property
    def seconds(self) -> float | None:
        """The time from the beginning of its first call to the end of its last."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowState:
    """A session with a plan, at its newest event."""

    workflow_id: str
    intent: str
    """Its goal, or its parameters as JSON."""
    parameters: dict[str, Any]
    workflow: str
    """The name of its agent."""
    completed_steps: list[str]
    """The completed steps, in the order of their ends."""
    step_results: dict[str, Any]
    """The results by step: its value, or its text."""
    current_step: str | None
    """The first running or possible step; None at the end."""
    status: str
    """`running`, `paused`, `completed` or `failed`."""
    created_at: datetime | None
    updated_at: datetime | None
    error_count: int = 0
    """The number of failed steps."""
    version: int
    """The version of the newest event."""
    steps: list[StepState] = field(default_factory=list)


def workflow_state(history: History) -> WorkflowState:
    """Return the state of the session of a whole *history*.

    Raises:
        RejectedError: the session follows no plan.
        CorruptEventError: the log is damaged before the end of the session.
    """
    if history.damage is not None:
        raise history.damage
    steps = _steps_of(history)
    assert history.state.progress is not None, "it has steps"
    given = history.state.progress.parameters
    goals = [fact.goal for _, fact in history.events if isinstance(fact, SessionStarted)]
    goal = next(filter(None, goals), "") or json.dumps(given, ensure_ascii=False)
    view, ended = history.view, [each for each in steps if each.ended_at is not None]
    done = sorted((s for s in ended if s.status == "completed"), key=lambda s: (s.ended_at, s.name))
    left = [each for each in steps if each.status in {"running", "pending"}]
    left.sort(key=lambda each: each.status != "running")
    status = _STATUS.get(view.status, "running")
    waiting = view.waiting is not None and view.waiting.kind in _OF_PEOPLE
    if status == "running" and (waiting or view.status in _HELD):
        status = "paused"
    times = [recorded.recorded_at for recorded, _ in history.events]
    return WorkflowState(
        workflow_id=history.id,
        intent=goal,
        parameters=given,
        workflow=history.state.agent.name,
        completed_steps=[each.name for each in done],
        step_results={each.name: each.value for each in done},
        current_step=left[0].name if left and not view.finished else None,
        status=status,
        created_at=times[0] if times else None,
        updated_at=times[-1] if times else None,
        error_count=sum(each.status == "failed" for each in steps),
        version=history.version,
        steps=steps,
    )


def _steps_of(history: History) -> list[StepState]:
    """Return the steps in the order of the plan.

    Raises:
        RejectedError: the session follows no plan.
    """
    progress = history.state.progress
    if progress is None:
        raise RejectedError(history.id, "it follows no plan: `cueline show` shows it")
    steps = {name: StepState(name=name) for name in progress.steps}
    of_effect: dict[str, str] = {}
    for recorded, fact in history.events:
        at = recorded.recorded_at
        if isinstance(fact, CallsAdded):
            of_effect |= {effect: call.name for effect, call in fact.calls.items()}
            for each in fact.ended:
                steps[each.step] = replace(steps[each.step], started_at=at, ended_at=at)
        changes = changes_of(fact)
        if isinstance(fact, MessageAwaited):
            changes = [CallChange(effect=fact.effect, status="started", attempt=fact.attempt)]
        for change in changes:
            step = steps.get(of_effect.get(change.effect, ""))
            if step is None:
                continue
            begun_at = step.started_at or at
            if change.status == "started":
                steps[step.name] = replace(
                    step,
                    status="running",
                    started_at=begun_at,
                    calls=step.calls + (change.attempt == 1),
                    children=step.children + ((shown(change.child),) if change.child else ()),
                )
            elif change.status in _ENDS:
                steps[step.name] = replace(step, started_at=begun_at, ended_at=at)
    return [_as_over(each, history) for each in steps.values()]


def _as_over(step: StepState, history: History) -> StepState:
    """Return *step* with its end, if the step is over."""
    assert history.state.progress is not None, "it has steps"
    over = history.state.progress.over.get(step.name)
    if over is None and history.state.finished and step.status == "pending":
        return replace(step, status="skipped", error_code="workflow_ended")
    if over is None:
        return replace(step, ended_at=None)
    return replace(
        step,
        status=over.status,
        value=over.value,
        error_code=over.error_code,
        error=over.error,
    )


def state_document(state: WorkflowState) -> str:
    """Return *state* as JSON with an indent of 2; times are ISO 8601 in UTC."""
    told = document(state)
    for each, step in zip(told["steps"], state.steps, strict=True):
        each["seconds"] = step.seconds
    return json.dumps(told, indent=2, ensure_ascii=False)


def write_state(state: WorkflowState, path: Path) -> None:
    """Write *state* to *path*, completely or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(f"{state_document(state)}\n")
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


@dataclass(frozen=True, slots=True)
class WorkflowCheck:
    """A workflow in a file, and its faults."""

    file: str
    problems: Sequence[SettingProblem] = ()
    """The faults, each with its key in the file, if it has one."""
    agent: AgentSpec | None = None
    """The recorded form; None if there is a fault."""


def check_workflow(file: str | PathLike[str]) -> WorkflowCheck:
    """Find the faults of a workflow's file, its tools and its agents.

    The tools are imported, as for a start; no key of a provider is needed.
    """
    name = str(file)
    try:
        flow = Agent.from_file(file)
        if not isinstance(flow, Workflow):
            why = 'it is no workflow, which has provider = "workflow"'
            return WorkflowCheck(name, [SettingProblem("provider", why)])
        if found := flow.checked()[1]:
            return WorkflowCheck(name, [SettingProblem(*each) for each in found])
        return WorkflowCheck(name, agent=flow.spec())
    except ConfigError as error:
        keyed = re.fullmatch(r"key '(.+?)': (.*)", error.reason, re.DOTALL)
        if error.subject == name and keyed:
            return WorkflowCheck(name, [SettingProblem(*keyed.groups())])
        said = error.reason if error.subject == name else str(error)
        return WorkflowCheck(name, [SettingProblem("", said)])
    except ToolImportError as error:
        return WorkflowCheck(name, [SettingProblem("", str(error))])
