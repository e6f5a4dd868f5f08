"""A session as JSON: one document, or event by event (000-032, 000-036 to 000-049)."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, structs
from pydantic import BaseModel

from cueline.actors.followed import Followed, Past
from cueline.console.tally import Tally
from cueline.console.telling import Telling
from cueline.deciders.prompt import FORKED_AWAY, Prompt, result_of
from cueline.deciders.session import SessionState
from cueline.event_text import cause_text, end_text
from cueline.events.agent import Limits
from cueline.events.session import (
    ApprovalResolved,
    ModelReplied,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
    calls_of,
)
from cueline.events.store import RecordedEvent
from cueline.events.stream import effect_of, shown

_ASKED = ("effect", "tool", "arguments", "edit", "requestedAt", "attempts", "rule")
"""What is said of a call, however it goes on; the rest is of its present status."""
_OVER = frozenset({"returned", "failed", "skipped", "reconciled"})


def event_document(recorded: RecordedEvent, fact: SessionEvent | None) -> dict[str, Any]:
    """Return one event with its place in the log."""
    return {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "type": recorded.type,
        "schema": recorded.schema,
        "occurred_at": recorded.occurred_at.isoformat(),
        "recorded_at": recorded.recorded_at.isoformat(),
        "epoch": recorded.epoch,
        "actor": recorded.actor,
        "step": recorded.step,
        "hash": recorded.hash.hex(),
        "fact": None if fact is None else fact.model_dump(mode="json", exclude={"type"}),
    }


def document(followed: Followed, past: Past) -> dict[str, Any]:
    """Return a session whole: status, messages, tool calls, metrics, limits, error, position."""
    telling = Telling()
    prompt = Prompt()
    ends: dict[str, Any] = {"result": None, "partial": False, "error": None}
    context: dict[str, Any] = {"labels": {}, "parent": None}
    calls: dict[str, dict[str, Any]] = {}
    for recorded, fact in past:
        if fact is None:
            continue
        telling.learn(fact, recorded.recorded_at)
        prompt.add(fact)
        _note_call(calls, recorded, fact)
        _note_end(ends, context, fact)
    return {
        "id": shown(followed.stream),
        **_setup(followed.state),
        "started": _iso(telling.tally.began_at),
        "lastUpdated": _iso(telling.tally.updated_at),
        "status": str(followed.state.status),
        "waiting": _waiting(followed.state),
        "context": context,
        "messages": [json.loads(message) for message in prompt.messages],
        "toolCalls": list(calls.values()),
        "metrics": _metrics(telling.tally),
        **ends,
        "position": _position(followed),
    }


def _waiting(state: SessionState) -> dict[str, Any] | None:
    wait = state.waiting
    return None if wait is None else {**plain(wait), "why": cause_text(wait.cause)}


def _position(followed: Followed) -> dict[str, int]:
    state = followed.state
    read = state.inbox_read
    return {"version": followed.version, "turn": state.turn.number, "inboxRead": read}


def plain(value: Any) -> Any:
    """Return *value* in what JSON can say; what is not set is left out of agents."""
    match value:
        case datetime():
            told: Any = value.isoformat()
        case BaseModel():
            told = value.model_dump(mode="json", exclude_defaults=True)
        case Mapping():
            told = {str(key): plain(item) for key, item in value.items()}
        case Struct():
            told = plain(structs.asdict(value))
        case tuple() | list():
            told = [plain(item) for item in value]
        case _:
            told = value
    return told


def tree(value: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Tell nested values line by line; empty ones are left out."""
    from cueline.console.text import one_line

    for key, item in value.items():
        if item in (None, "", [], {}):
            continue
        if isinstance(item, Mapping):
            yield f"{' ' * indent}{key}:"
            yield from tree(item, indent + 2)
        elif isinstance(item, list) and isinstance(item[0], Mapping):
            for number, each in enumerate(item):
                yield f"{' ' * indent}{key}[{number}]:"
                yield from tree(each, indent + 2)
        else:
            told = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            yield f"{' ' * indent}{key}: {one_line(told, 200)}"


def _setup(state: SessionState) -> dict[str, Any]:
    if state.setup is None:
        return {}
    agent = state.agent
    said = {key.removeprefix("limits."): at for key, at in agent.limit_sources.items()}
    sources = {key: at for key, at in said.items() if key in Limits.model_fields}
    limits = {**agent.limits.model_dump(mode="json"), "sources": sources}
    place = agent.workspace.model_dump() if agent.workspace else None
    return {
        "agent": agent.name,
        "provider": agent.provider,
        "model": agent.model,
        "limits": limits,
        "policy": agent.policy.model_dump(mode="json"),
        "workspace": place,
    }


def _metrics(tally: Tally) -> dict[str, Any]:
    past = tally.inherited
    return {
        "tokensUsed": tally.usage.model_dump(),
        "estimatedCost": str(tally.cost),
        "estimatedPart": str(tally.estimated),
        "childrenCost": str(tally.children_cost),
        "unpricedTurns": tally.unpriced,
        "turnCount": tally.turns,
        "toolCallCount": tally.tool_calls,
        "takeovers": tally.takeovers,
        "lostAttempts": tally.lost_attempts,
        "inherited": None if past is None else _metrics(past),
    }


def _note_call(
    calls: dict[str, dict[str, Any]], recorded: RecordedEvent, fact: SessionEvent
) -> None:
    at = _iso(recorded.recorded_at)
    match fact:
        case ModelReplied():
            for effect, call in calls_of(fact).items():
                calls[effect] = {
                    "effect": effect,
                    "tool": call.name,
                    "arguments": call.arguments,
                    "requestedAt": at,
                    "status": "requested",
                    "attempts": 0,
                }
        case ApprovalResolved(edit=dict(edit)) if effect_of(fact.approval) in calls:
            # Not instead of what the model asked for: both are to be seen.
            calls[effect_of(fact.approval)]["edit"] = edit
        case SessionForked():
            away = {"status": "skipped", "message": FORKED_AWAY, "changedAt": at}
            still = [effect for effect, call in calls.items() if call["status"] not in _OVER]
            calls.update({effect: _asked(calls[effect]) | away for effect in still})
        case _ if (known := calls.get(getattr(fact, "effect", ""))) and (change := _change(fact)):
            calls[known["effect"]] = _asked(known) | change | {"changedAt": at}


def _asked(call: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of *call* whatever becomes of it; the rest is of its last status."""
    return {key: told for key, told in call.items() if key in _ASKED}


def _change(fact: SessionEvent) -> dict[str, Any] | None:
    change: dict[str, Any] | None = None
    match fact:
        case ToolStarted(attempt=attempt, rule=rule):
            change = {"status": "started", "attempts": attempt, "rule": rule}
        case ToolReturned(output=output, seconds=seconds, whole=whole):
            change = {"status": "returned", "output": output, "seconds": seconds, "whole": whole}
        case ToolFailed(kind=kind, message=message, retry_at=retry_at):
            status = "failed" if retry_at is None else "retry"
            change = {"status": status, "kind": kind, "message": message}
        case ToolSkipped(reason=reason):
            change = {"status": "skipped", "message": reason}
        case ToolInDoubt(evidence=evidence):
            change = {"status": "in doubt", "message": evidence}
        case ToolReconciled(outcome="did_not_happen" | "run_again" as outcome, by=by):
            change = {"status": "requested", "outcome": outcome, "by": by}
        case ToolReconciled(outcome=outcome, by=by, output=output) if result_of(fact) is not None:
            change = {"status": "reconciled", "outcome": outcome, "by": by, "output": output}
        case _:
            pass
    if change is not None and getattr(fact, "degraded", False):
        change["degraded"] = True
    return change


def _note_end(ends: dict[str, Any], context: dict[str, Any], fact: SessionEvent) -> None:
    match fact:
        case SessionStarted(labels=labels, parent=parent):
            context.update(labels=labels, parent=shown(parent) if parent else None)
        case SessionForked(parent=parent, version=version):
            context.update(labels={}, parent=shown(parent), forkedAt=version)
            ends.update(result=None, partial=False, error=None)
        case (
            SessionCompleted(result=result, partial=partial)
            | SessionIdle(result=result, partial=partial)
        ):
            ends.update(result=result, partial=partial)
        case SessionFailed() | SessionStopped():
            ends["error"] = error_document(fact)
        case _:
            pass


def error_document(end: SessionFailed | SessionStopped) -> dict[str, Any]:
    """Return why a session failed or was stopped, as codes and words, and as a sentence."""
    if isinstance(end, SessionStopped):
        told: dict[str, Any] = {"kind": end.code, "message": end.reason, "by": end.by}
    else:
        told = end.model_dump(include={"kind", "message", "recoverable"})
        told |= {"approval": end.approval} if end.approval else {}
    return {**told, "text": end_text(end)}


def _iso(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
