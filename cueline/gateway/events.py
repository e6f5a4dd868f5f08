"""Sends the events of sessions as they come, by server-sent events.

The id of an event is its position in the log. A client that connects again with
`Last-Event-ID` gets all events after that position. The pieces of a reply have no id: they
are not recorded, and a client that comes later gets the whole reply.
"""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from sse_starlette import EventSourceResponse, ServerSentEvent

from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.export import event_document
from cueline.client.live_text import TextDelta, live_text, with_live_text
from cueline.deciders.session import TERMINAL
from cueline.events.fact import Fact
from cueline.events.store import RecordedEvent

HEARTBEAT_SECONDS: Final = 30
KINDS: Final = {
    "ToolStarted": "tool_call",
    "CallDelegated": "tool_call",
    "ToolReturned": "tool_result",
    "ToolFailed": "tool_result",
    "ToolReconciled": "tool_result",
    "ApprovalRequested": "awaiting_confirmation",
    "ModelReplied": "message",
    "MessageReceived": "message",
    "SessionCompleted": "done",
    "SessionStopped": "done",
    "SessionFailed": "error",
}
"""The name of each event in the stream; all others are named `event`."""


async def events_of(client: Client, stream: str, after: int) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a session after a position, and the replies as they come, to its end."""
    watcher = client.session(stream).watch()
    with live_text(client.log, stream, client.place) as pieces:
        async with aclosing(with_live_text(watcher.follow(), pieces)) as happening:
            async for each in happening:
                if isinstance(each, TextDelta):
                    yield ServerSentEvent(data=json.dumps(document(each)), event="text_delta")
                    continue
                recorded, fact = each
                if recorded.position > after:
                    yield _event(recorded, fact)
                if watcher.reader.state.status in TERMINAL:
                    return


async def events_of_log(client: Client, after: int) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of all sessions that the caller reaches after a position, without end."""
    journal = client.log.journal()
    async for recorded in client.log.store.follow(after, ("session",)):
        if not client.log.sees(recorded.stream):
            continue
        fact = await journal.fact_of(recorded)
        yield _event(recorded, fact if isinstance(fact, Fact) else None)


def _event(recorded: RecordedEvent, fact: Any) -> ServerSentEvent:
    return ServerSentEvent(
        id=str(recorded.position),
        event=KINDS.get(recorded.type, "event"),
        data=json.dumps(event_document(recorded, fact)),
    )


def response_of(events: AsyncIterator[Any]) -> EventSourceResponse:
    """Return the response that sends *events*, and a comment every 30 s."""
    return EventSourceResponse(
        events,
        ping=HEARTBEAT_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="heartbeat"),
    )
