"""The lines of a transcript for each fact."""

import json
from collections.abc import Iterator

from cueline.events.fact import Fact
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, message_text
from cueline.events.session import (
    CallsAdded,
    LimitWarned,
    MessageReceived,
    ModelReplied,
    SessionCompleted,
    SessionFailed,
    SessionForked,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    calls_of,
)
from cueline.events.store import RecordedEvent
from cueline.projections.transcript import EXCERPT

Told = tuple[str, str, str, str, bool]
"""Kind, effect, name, text, and whether it failed."""
WITHOUT_LINES = frozenset({"ModelRequested", "ModelStarted", "ToolStarted", "SessionContinued"})
"""The most frequent ones."""
_JSON = json.JSONEncoder(ensure_ascii=False)


def lines(recorded: RecordedEvent, fact: object, tool: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows for one event of a session."""
    if recorded.type in WITHOUT_LINES or not isinstance(fact, Fact):
        return
    stream, version, at = recorded.stream, recorded.version, recorded.recorded_us
    for part, (kind, effect, name, text, failed) in enumerate(_result_lines(fact, tool)):
        yield (
            *(stream, version, part, kind, effect, name),
            *(text[:EXCERPT], len(text), failed, at),
        )


def _result_lines(fact: Fact, tool: str) -> Iterator[Told]:
    match fact:
        case ToolReturned(effect=effect, output=output):
            yield "result", effect, tool, output, False
        case ModelReplied():
            yield from _replied(fact)
        case CallsAdded():
            yield from _requested(fact)
        case ToolFailed(effect=effect, kind=kind, message=message, retry_at=None):
            yield "result", effect, tool, f"{kind}: {message}", True
        case ToolSkipped(effect=effect, reason=reason):
            yield "result", effect, tool, reason, True
        case ToolReconciled(effect=effect, output=output) if output:
            yield "result", effect, tool, output, fact.outcome != "happened"
        case MessageReceived(message=MessageSent(lane=lane, text=text, attachments=attached)):
            yield "user", "", lane, message_text(text, attached), False
        case SessionStarted(goal=goal, attachments=attached) if goal or attached:
            yield "user", "", "goal", message_text(goal or "", attached), False
        case SessionForked(goal=str(goal)):
            yield "user", "", "goal", goal, False
        case _:
            yield from _life(fact)


def _replied(fact: ModelReplied) -> Iterator[Told]:
    text = "\n".join(block.text for block in fact.content if isinstance(block, TextBlock))
    if text:
        yield "assistant" if fact.cut is None else "summary", fact.effect, fact.model, text, False
    yield from _requested(fact)


def _requested(fact: ModelReplied | CallsAdded) -> Iterator[Told]:
    for effect, call in calls_of(fact).items():
        said = call.malformed
        arguments = _JSON.encode(call.arguments) if said is None else said
        yield "call", effect, call.name, arguments, said is not None


def _life(fact: Fact) -> Iterator[Told]:
    match fact:
        case SessionWaiting(kind=kind, cause=cause):
            yield "wait", "", kind, cause.model_dump_json(), False
        case LimitWarned(limit=limit, note=note) if note:
            yield "user", "", limit, note, False
        case SessionTakenOver(lost_attempts=lost):
            yield "takeover", "", "", ", ".join(attempt.effect for attempt in lost), False
        case SessionCompleted(result=result):
            yield "end", "", "completed", result, False
        case SessionFailed(kind=kind):
            yield "end", "", "failed", f"{kind} {fact.message or fact.approval}".rstrip(), True
        case SessionStopped(reason=reason):
            yield "end", "", "stopped", reason, False
