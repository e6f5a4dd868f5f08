"""Exports a session in the forms of others: one flat document, and CloudEvents 1.0."""

from collections.abc import Mapping
from typing import Any, Final

from cueline.client.document import document
from cueline.client.export import CallRow, Export
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent

_STATUS: Final = {
    "completed": "completed",
    "failed": "failed",
    "stopped": "failed",
    "idle": "paused",
    "paused": "paused",
    "waiting": "paused",
}
"""The status of a flat document; the others are `running`."""


def flat_of(told: Export) -> dict[str, Any]:
    """Return a session as one flat document in camelCase; what is unknown is left out.

    The status is `running`, `paused`, `completed` or `failed`.
    """
    metrics, limits, error = told.metrics, told.limits or {}, told.error
    flat = {
        "id": told.id,
        "role": told.agent,
        "provider": told.provider,
        "model": told.model,
        "started": told.started_at,
        "lastUpdated": told.updated_at,
        "status": _STATUS.get(told.status, "running"),
        "taskId": told.labels.get("task"),
        "chainId": told.labels.get("chain"),
        "parentSessionId": told.parent,
        "messages": [_message(each) for each in told.messages],
        "toolCallHistory": [_call(each) for each in told.tool_calls],
        "tokensUsed": metrics and {"input": metrics.tokens.input, "output": metrics.tokens.output},
        "estimatedCost": metrics and float(metrics.cost),
        "turnCount": metrics and metrics.turns,
        "maxTokens": limits.get("max_tokens"),
        "maxCost": None if limits.get("max_cost") is None else float(str(limits["max_cost"])),
        "error": error and {"message": error.text, "recoverable": error.recoverable},
        "position": {"version": told.version, "turn": told.turn},
    }
    return {key: document(value) for key, value in flat.items() if value is not None}


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    texts = [each["text"] for each in message.get("content", ()) if each["kind"] == "text"]
    calls = [
        {name: call[name] for name in ("id", "name", "arguments")}
        for call in message.get("calls", ())
    ]
    return {
        "role": message["role"],
        "content": message.get("text", "".join(texts)),
        **({"toolCalls": calls} if calls else {}),
        **({"toolCallId": message["call"]} if "call" in message else {}),
    }


def _call(call: CallRow) -> dict[str, Any]:
    flat = {
        "id": call.effect,
        "tool": call.tool,
        "arguments": call.arguments if call.edit is None else call.edit,
        "status": call.status,
        "requestedAt": call.requested_at,
        "changedAt": call.changed_at,
        "result": call.output,
        "error": call.message,
    }
    return {key: value for key, value in flat.items() if value is not None}


def cloud_event(log_id: str, recorded: RecordedEvent, fact: SessionEvent | None) -> dict[str, Any]:
    """Return one event as a CloudEvent 1.0 in JSON; an emptied event has no `data`.

    Its id is its position in the log, and its source the log.
    """
    event = {
        "specversion": "1.0",
        "id": str(recorded.position),
        "source": f"urn:cueline:log:{log_id}",
        "type": f"cueline.{recorded.type}",
        "subject": recorded.stream,
        "time": document(recorded.recorded_at),
        "schemaversion": recorded.schema,
        "streamversion": recorded.version,
        "actor": recorded.actor,
        "hash": recorded.hash.hex(),
        "correlationid": recorded.correlation_id,
        "causationid": recorded.causation_id,
    }
    if fact is not None:
        event["datacontenttype"] = "application/json"
        event["data"] = fact.model_dump(mode="json", exclude={"type"})
    return {key: value for key, value in event.items() if value not in (None, "")}
