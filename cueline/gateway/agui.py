"""A session as a run of AG-UI 1.0, the protocol of front ends such as CopilotKit.

A thread is a session; a run is what the session does until it rests. A call that waits for a
person ends the run with an interrupt, and the next run brings the answer.
"""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import ag_ui.core as ag
from fastapi import FastAPI, Request
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from cueline.client.client import Client
from cueline.client.live_text import TextDelta
from cueline.client.runs import submit
from cueline.client.session import Session, VersionedEvent
from cueline.client.start import StartOptions, id_of_key
from cueline.errors import ConfigError, CuelineError, UnknownSessionError
from cueline.events.event_text import end_text
from cueline.events.message import TextBlock
from cueline.events.session import (
    CallsAdded,
    ModelReplied,
    SessionCompleted,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    ToolFailed,
    ToolReturned,
    ToolSkipped,
    calls_of,
)
from cueline.gateway.events import response_of
from cueline.gateway.guard import caller_of

_ANSWER: Final = {
    "type": "object",
    "required": ["approved"],
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
}
"""The schema of the payload that answers an interrupt."""
Ended = SessionCompleted | SessionIdle | SessionFailed | SessionStopped


def add_agui(app: FastAPI) -> None:
    """Add the route `/v1/agui` to the API."""
    stream: dict[int | str, Any] = {200: {"content": {"text/event-stream": {}}}}

    @app.post("/v1/agui", response_model=None, responses=stream)
    async def agui(request: Request, asked: ag.RunAgentInput) -> Response:
        """Go on with the session of a thread, and send what it does as AG-UI events.

        An unknown thread starts a run of the blueprint that `forwardedProps.blueprint` names.
        """
        client = caller_of(request).client
        session, after = await _begun(client, asked)
        return response_of(_sent(_run(client, session, after, asked)))


async def _begun(client: Client, asked: ag.RunAgentInput) -> tuple[Session, int]:
    """Carry out the request; return the session, and its version before.

    Raises:
        ConfigError: the thread is new, and no blueprint is named; or there is nothing to do.
    """
    said = next((each for each in reversed(asked.messages) if each.role == "user"), None)
    text = "" if said is None else _text_of(said)
    session = await _session_of(client, asked.thread_id)
    if session is None:
        given = asked.forwarded_props
        blueprint = given.get("blueprint") if isinstance(given, dict) else None
        if not isinstance(blueprint, str):
            why = "name the blueprint of a new thread in `forwardedProps.blueprint`"
            raise ConfigError("forwardedProps", why)
        options = StartOptions(goal=text or None, open=True, key=asked.thread_id)
        return await submit(client, blueprint, options), 0
    after = (await client.show(session.id)).version
    for each in asked.resume or ():
        given = each.payload if isinstance(each.payload, dict) else {}
        granted = each.status == "resolved" and given.get("approved") is True
        decide = client.approve if granted else client.deny
        await decide(each.interrupt_id, note=str(given.get("note", "")))
    if not asked.resume and said is not None:
        await session.send(text, key=said.id)
    return session, after


async def _session_of(client: Client, thread: str) -> Session | None:
    for name in (thread, id_of_key(thread)):
        try:
            return client.session(await client.find(name))
        except UnknownSessionError:
            continue
    return None


def _text_of(message: Any) -> str:
    if isinstance(message.content, str):
        return message.content
    return "\n".join(part.text for part in message.content if part.type == "text")


async def _run(
    client: Client, session: Session, after: int, asked: ag.RunAgentInput
) -> AsyncIterator[ag.BaseEvent]:
    thread, run = asked.thread_id, asked.run_id
    yield ag.RunStartedEvent(thread_id=thread, run_id=run, protocol_version=ag.PROTOCOL_VERSION)
    reply, end = _Reply(), None
    try:
        async for each in session.stream(after):
            if isinstance(each, VersionedEvent) and isinstance(each.event, Ended):
                end = each.event
            sent = reply.piece(each) if isinstance(each, TextDelta) else _events(each, reply)
            for event in sent:
                yield event
        details = await client.show(session.id)
    except CuelineError as error:
        yield ag.RunErrorEvent(message=str(error), code=type(error).__name__)
        return
    if isinstance(end, SessionFailed | SessionStopped):
        yield ag.RunErrorEvent(message=end_text(end), code=getattr(end, "kind", "stopped"))
        return
    waiting = [
        ag.Interrupt(
            id=each.id,
            reason="approval",
            message=each.summary,
            tool_call_id=each.effect,
            response_schema=_ANSWER,
            expires_at=each.deadline_at.isoformat(),
            metadata={"arguments": dict(each.arguments), "preview": each.preview},
        )
        for each in details.questions
    ]
    outcome: Any = ag.RunFinishedSuccessOutcome()
    if waiting:
        outcome = ag.RunFinishedInterruptOutcome(interrupts=waiting)
    result = end.result if isinstance(end, SessionCompleted | SessionIdle) else None
    yield ag.RunFinishedEvent(thread_id=thread, run_id=run, result=result, outcome=outcome)


class _Reply:
    """The text of a reply that was sent so far."""

    def __init__(self) -> None:
        self._id, self._text = "", ""

    def piece(self, piece: TextDelta) -> Iterator[ag.BaseEvent]:
        if piece.kind == "text":
            yield from self._say(f"{piece.effect}.{piece.attempt}", piece.text)

    def end(self, fact: ModelReplied) -> Iterator[ag.BaseEvent]:
        """Send the rest of a reply: pieces may be missing."""
        text = "\n".join(block.text for block in fact.content if isinstance(block, TextBlock))
        if not self._id or not text.startswith(self._text):
            yield from self._close()
            if text:
                yield from self._say(f"{fact.effect}.{fact.attempt}.whole", text)
        elif rest := text[len(self._text) :]:
            yield from self._say(self._id, rest)
        yield from self._close()

    def _say(self, name: str, text: str) -> Iterator[ag.BaseEvent]:
        if name != self._id:
            yield from self._close()
            self._id = name
            yield ag.TextMessageStartEvent(message_id=name, role="assistant")
        self._text += text
        yield ag.TextMessageContentEvent(message_id=name, delta=text)

    def _close(self) -> Iterator[ag.BaseEvent]:
        if self._id:
            yield ag.TextMessageEndEvent(message_id=self._id)
        self._id, self._text = "", ""


def _events(each: VersionedEvent, reply: _Reply) -> Iterator[ag.BaseEvent]:
    match each.event:
        case ModelReplied() as fact:
            yield from reply.end(fact)
            yield from _calls(fact)
        case CallsAdded() as fact:
            yield from _calls(fact)
        case ToolReturned(effect=effect, output=output):
            yield _result(effect, each.version, output)
        case ToolFailed(effect=effect, message=message, retry_at=None):
            yield _result(effect, each.version, message)
        case ToolSkipped(effect=effect, reason=reason):
            yield _result(effect, each.version, reason)
        case _:
            pass


def _calls(fact: ModelReplied | CallsAdded) -> Iterator[ag.BaseEvent]:
    for effect, call in calls_of(fact).items():
        yield ag.ToolCallStartEvent(tool_call_id=effect, tool_call_name=call.name)
        yield ag.ToolCallArgsEvent(tool_call_id=effect, delta=json.dumps(call.arguments))
        yield ag.ToolCallEndEvent(tool_call_id=effect)


def _result(effect: str, version: int, content: str) -> ag.BaseEvent:
    return ag.ToolCallResultEvent(
        message_id=f"{effect}.{version}", tool_call_id=effect, content=content, role="tool"
    )


async def _sent(events: AsyncIterator[ag.BaseEvent]) -> AsyncIterator[ServerSentEvent]:
    async for event in events:
        yield ServerSentEvent(data=event.model_dump_json(by_alias=True))
