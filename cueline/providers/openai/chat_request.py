"""Builds requests of the Chat Completions dialect from neutral messages."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    FileBlock,
    ImageBlock,
    Message,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.openai.content import Json, data_url, given
from cueline.providers.openai.servers import PROVIDER, Server
from cueline.providers.transcript import (
    BLANK,
    function_tools,
    note_of,
    transcript,
    written_arguments,
)

KEPT: Final = "reasoning_details"
MISTRAL_ID: Final = re.compile("[a-zA-Z0-9]{9}")
PDF: Final = "application/pdf"


def chat_body(
    agent: AgentSpec, messages: Iterable[bytes], server: Server, *, lacking: Collection[str] = ()
) -> Json:
    """Return the JSON of a request for the next reply, as a stream.

    Args:
        agent: the agent.
        messages: the conversation.
        server: what the server does differently.
        lacking: the capabilities that the model lacks; without `images` a text stands for each.
    """
    body: Json = {
        "model": agent.model,
        "stream": True,
        server.limit: agent.limits.max_output_tokens,
    }
    if server.usage_option:
        body["stream_options"] = {"include_usage": True}
    body |= given(agent)
    if agent.tools:
        body["tools"] = function_tools(agent)
    told = [{"role": "system", "content": agent.instructions}] if agent.instructions.strip() else []
    heard = transcript(
        messages,
        provider=PROVIDER,
        model=agent.model,
        images="images" not in lacking,
        files=server.files,
    )
    # Last, so that the text of a request is a prefix of the next one's.
    said = conversation(heard, server)
    body["messages"] = [*told, *(for_mistral(said) if server.is_mistral else said)]
    return body


def for_mistral(messages: Iterable[Json]) -> Iterator[Json]:
    """Yield *messages* in the form that mistral-common checks."""
    before = ""
    for message in messages:
        if (before, message["role"]) == ("tool", "user"):
            yield {"role": "assistant", "content": BLANK}
        before = message["role"]
        for call in message.get("tool_calls", ()):
            call["id"] = mistral_id(call["id"])
        if before == "tool":
            message["tool_call_id"] = mistral_id(message["tool_call_id"])
        yield message


def mistral_id(call_id: str) -> str:
    """Return an id for Mistral, the same for the same *call_id*."""
    if MISTRAL_ID.fullmatch(call_id):
        return call_id
    return hashlib.sha256(call_id.encode()).hexdigest()[:9]


def conversation(messages: Iterable[Message], server: Server) -> Iterator[Json]:
    """Yield the messages in the dialect's form.

    A result holds only text: its attachments follow the last result, as the user's.
    """
    attached: list[Attachment] = []
    for message in messages:
        if attached and not isinstance(message, ToolMessage):
            yield {"role": "user", "content": said("(attached to the results)", attached)}
            attached = []
        match message:
            case AssistantMessage():
                yield answer(message, server)
            case ToolMessage(call=call, text=text):
                attached += message.attachments
                yield {
                    "role": "tool",
                    "tool_call_id": call,
                    "content": text if text.strip() else BLANK,
                }
            case UserMessage(text=text, attachments=attachments):
                yield {"role": "user", "content": said(text, attachments)}
    if attached:
        yield {"role": "user", "content": said("(attached to the results)", attached)}


def said(text: str, attachments: Sequence[Attachment]) -> str | list[Json]:
    """Return the content of a message: a plain text if it is one, for the oldest servers."""
    if not attachments:
        return text
    pieces = [part_of(attachment) for attachment in attachments]
    return [*pieces, {"type": "text", "text": text}] if text.strip() else pieces


def part_of(attachment: Attachment) -> Json:
    """Return the part of a message for an image or document."""
    match attachment:
        case ImageBlock():
            return {"type": "image_url", "image_url": {"url": data_url(attachment)}}
        case FileBlock(media_type=media_type, name=name) if media_type == PDF:
            return {"type": "file", "file": {"filename": name, "file_data": data_url(attachment)}}
        case FileBlock():
            return {"type": "text", "text": note_of(attachment)}


def answer(message: AssistantMessage, server: Server) -> Json:
    """Return a reply of the model in the dialect's form."""
    words = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    told: Json = {"role": "assistant", "content": words or None}
    thoughts = "".join(
        b.text for b in message.content if isinstance(b, ThinkingBlock) and b.provider
    )
    if server.thoughts and thoughts:
        told[server.thoughts] = thoughts
    kept = [block.data.get(KEPT) for block in message.content if isinstance(block, OpaqueBlock)]
    if server.kept and any(kept):
        told[server.kept] = next(filter(None, kept))
    if message.calls:
        told["tool_calls"] = [call_of(call, server) for call in message.calls]
    elif not words:
        told["content"] = BLANK
    return told


def call_of(call: ToolCall, server: Server) -> dict[str, Any]:
    """Return a tool call in the dialect's form."""
    arguments = written_arguments(call, unparsed=server.leaves_unparsed)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
