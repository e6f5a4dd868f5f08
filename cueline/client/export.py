"""Exports a session as one document: status, messages, calls and usage."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from cueline.client.document import document
from cueline.client.history import History
from cueline.deciders.prompt import FORKED_AWAY, Prompt
from cueline.events.agent import Limits
from cueline.events.event_text import cause_text, end_text
from cueline.events.message import Usage
from cueline.events.session import (
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionStarted,
    SessionStopped,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import shown
from cueline.projections.calls import OVER, CallChange, changes_of
from cueline.projections.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One tool call; fields after `attempts` depend on the current status."""

    effect: str
    tool: str
    arguments: Mapping[str, object]
    edit: Mapping[str, object] | None = None
    """The arguments that a person allowed instead."""
    requested_at: datetime
    attempts: int = 0
    rule: str | None = None
    status: str = "requested"
    """`requested`, `started`, `retry`, `in doubt`; at the end `returned`, `failed`, `skipped`
    or `reconciled`."""
    changed_at: datetime | None = None
    output: str | None = None
    seconds: float | None = None
    whole: str | None = None
    """The blob with the whole output, if the model got a part of it."""
    kind: str | None = None
    message: str | None = None
    outcome: str | None = None
    by: str | None = None
    degraded: bool = False
    """Whether the call failed and the session continues without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The usage of a session."""

    tokens: Usage
    cost: Decimal
    estimated_cost: Decimal
    children_cost: Decimal
    unpriced: int
    turns: int
    tool_calls: int
    takeovers: int
    lost_attempts: int
    inherited: "Metrics | None"
    """The usage of a fork's shared past, which is not part of the fork's usage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The reason why a session failed or was stopped."""

    kind: str
    message: str
    """The text of the person or error that ended it."""
    text: str
    """The reason as a sentence."""
    recoverable: bool = False
    by: str | None = None
    """The person who stopped it."""
    approval: str | None = None
    """The approval whose outcome ended it."""


@dataclass(slots=True, kw_only=True)
class Export:
    """A whole session."""

    id: str
    status: str
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    limits: Mapping[str, object] | None = None
    """The limits, with `sources`: the source of each."""
    policy: Mapping[str, object] | None = None
    workspace: Mapping[str, object] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    parent: str | None = None
    """The session that started it, or from which it was forked."""
    forked_at: int | None = None
    started_at: datetime | None = None
    updated_at: datetime | None = None
    waiting: Mapping[str, object] | None = None
    messages: Sequence[Mapping[str, object]] = ()
    tool_calls: Sequence[CallRow] = ()
    metrics: Metrics | None = None
    result: str | None = None
    partial: bool = False
    error: Ending | None = None
    version: int = 0
    turn: int = 0
    inbox_read: int = 0


_CHANGED = ("output", "seconds", "whole", "kind", "message", "outcome", "by", "degraded")
"""The fields of a call that depend on its status."""
_COUNTED = (
    "cost",
    "children_cost",
    "unpriced",
    "turns",
    "tool_calls",
    "takeovers",
    "lost_attempts",
)


def export_of(history: History) -> Export:
    """Return a session as one document."""
    state, tally, prompt = history.state, Summary(), Prompt()
    told = Export(id=history.id, status=history.status, version=history.version)
    calls: dict[str, CallRow] = {}
    for recorded, fact in history.events:
        if fact is None:
            continue
        tally = tally.after(fact, recorded.recorded_at)
        prompt.add(fact)
        _note_call(calls, recorded, fact)
        _note_origin(told, fact)
    if state.setup is not None:
        _note_setup(told, history)
    told.started_at, told.updated_at = tally.began_at, tally.updated_at
    if (wait := state.waiting) is not None:
        told.waiting = {**document(wait), "why": cause_text(wait.cause)}
    told.messages = [json.loads(message) for message in prompt.transcript]
    told.tool_calls = list(calls.values())
    told.metrics, told.partial = _metrics(tally), tally.partial
    told.result = None if tally.answer is None else tally.answer.result
    told.error = None if tally.failure is None else ending_of(tally.failure)
    told.turn, told.inbox_read = state.turn.number, state.inbox_read
    return told


def event_document(recorded: RecordedEvent, fact: SessionEvent | None) -> dict[str, Any]:
    """Return one event with its place in the log; the fact of an emptied event is None."""
    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "type": recorded.type,
        "schema": recorded.schema,
        "occurred_at": document(recorded.occurred_at),
        "recorded_at": document(recorded.recorded_at),
        "epoch": recorded.epoch,
        "actor": recorded.actor,
        "correlation_id": recorded.correlation_id,
        "step": recorded.step,
        "hash": recorded.hash.hex(),
        "fact": None if fact is None else fact.model_dump(mode="json", exclude={"type"}),
    }


def _note_setup(told: Export, history: History) -> None:
    agent = history.state.agent
    said = {key.removeprefix("limits."): at for key, at in agent.limit_sources.items()}
    sources = {key: at for key, at in said.items() if key in Limits.model_fields}
    told.agent, told.provider, told.model = agent.name, agent.provider, agent.model
    told.limits = {**agent.limits.model_dump(mode="json"), "sources": sources}
    told.policy = agent.policy.model_dump(mode="json")
    told.workspace = agent.workspace.model_dump() if agent.workspace else None


def _metrics(tally: Summary) -> Metrics:
    past = tally.inherited
    return Metrics(
        **{name: getattr(tally, name) for name in _COUNTED},
        tokens=tally.usage,
        estimated_cost=tally.estimated,
        inherited=None if past is None else _metrics(past),
    )


def _note_call(calls: dict[str, CallRow], recorded: RecordedEvent, fact: SessionEvent) -> None:
    at = recorded.recorded_at
    if isinstance(fact, SessionForked):
        for effect, row in calls.items():
            if row.status not in OVER:
                away = CallChange(effect=effect, status="skipped", message=FORKED_AWAY)
                calls[effect] = _changed(row, at, away)
    for change in changes_of(fact):
        if (call := change.call) is not None:
            calls[change.effect] = CallRow(
                effect=change.effect, tool=call.name, arguments=call.arguments, requested_at=at
            )
        elif (known := calls.get(change.effect)) is None:
            continue
        elif change.edit is not None:
            # The edit is shown beside the arguments of the model, not instead of them.
            calls[change.effect] = replace(known, edit=change.edit)
        elif change.status not in ("", "lost"):
            calls[change.effect] = _changed(known, at, change)


def _changed(call: CallRow, at: datetime, change: CallChange) -> CallRow:
    """Return *call* with another status."""
    told: dict[str, Any] = {name: getattr(change, name) for name in _CHANGED}
    if change.status != "returned":
        told["seconds"] = None
    if change.status == "started":
        told |= {"attempts": change.attempt, "rule": change.rule}
    return replace(call, changed_at=at, status=change.status.replace("_", " "), **told)


def _note_origin(told: Export, fact: SessionEvent) -> None:
    match fact:
        case SessionStarted(labels=labels, parent=parent):
            told.labels, told.parent = labels, shown(parent) if parent else None
        case SessionForked(parent=parent, version=version):
            told.labels, told.parent, told.forked_at = {}, shown(parent), version
        case _:
            pass


def ending_of(fact: SessionFailed | SessionStopped) -> Ending:
    """Return the reason why a session failed or was stopped: codes, text, and a sentence."""
    if isinstance(fact, SessionStopped):
        return Ending(kind=fact.code, message=fact.reason, text=end_text(fact), by=fact.by)
    return Ending(
        kind=fact.kind,
        message=fact.message,
        text=end_text(fact),
        recoverable=fact.recoverable,
        approval=fact.approval or None,
    )
