"""Builds Anthropic's requests from neutral messages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    Block,
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.patience import OWN
from cueline.providers.transcript import BLANK, note_of, sent_arguments, text_of, transcript

PROVIDER: Final = "anthropic"
Json = dict[str, Any]

CALL: Final = "tool_use"
PLACE: Final = OpaqueBlock(provider=PROVIDER, data={"type": CALL})
"""The mark for the place of a call in an answer: thoughts keep their places among calls."""

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
PDF: Final = "application/pdf"


def conversation(messages: Iterable[bytes]) -> list[Json]:
    """Return the messages in Anthropic's form, with alternating roles."""
    turns: list[Json] = []
    for message in transcript(messages, provider=PROVIDER):
        match message:
            case AssistantMessage():
                role, blocks = "assistant", answer_blocks(message)
            case ToolMessage():
                role, blocks = "user", [result_block(message)]
            case UserMessage():
                role, blocks = "user", list(said_blocks(message.text, message.attachments))
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    return turns


def answer_blocks(message: AssistantMessage) -> list[Json]:
    """Return the blocks of an answer; calls without a place are at the end.

    The API refuses an answer that ends in a thought.
    """
    calls = deque(map(call_block, message.calls))
    blocks: list[Json] = []
    for block in content_blocks(message.content):
        if block["type"] != CALL:
            blocks.append(block)
        elif calls:
            blocks.append(calls.popleft())
    blocks += calls
    if blocks and blocks[-1]["type"] in THOUGHTS:
        blocks.append({"type": "text", "text": BLANK})
    return blocks


def content_blocks(content: Sequence[Block]) -> Iterator[Json]:
    """Yield the blocks that Anthropic accepts: no thoughts without Anthropic's signature."""
    for block in content:
        match block:
            case TextBlock(text=text):
                yield {"type": "text", "text": text}
            case ThinkingBlock(text=text, signature=signature) if signature:
                yield {"type": "thinking", "thinking": text, "signature": signature}
            case OpaqueBlock(data=data):
                yield dict(data)
            case _:
                pass


def said_blocks(text: str, attachments: Sequence[Attachment]) -> Iterator[Json]:
    """Yield the blocks of a message or result: attachments first, as the vendor advises."""
    yield from map(attachment_block, attachments)
    if text.strip():
        yield {"type": "text", "text": text}


def attachment_block(attachment: Attachment) -> Json:
    """Return the block of an image or document; for any other file, a text that names the file."""
    match attachment:
        case ImageBlock(media_type=media_type, data=data):
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case FileBlock(media_type=media_type, name=name, data=data) if media_type == PDF:
            source = {"type": "base64", "media_type": PDF, "data": data}
            return {"type": "document", "source": source, "title": name}
        case FileBlock(media_type=media_type, name=name) if media_type.startswith("text/"):
            source = {"type": "text", "media_type": "text/plain", "data": text_of(attachment)}
            return {"type": "document", "source": source, "title": name}
        case FileBlock():
            return {"type": "text", "text": note_of(attachment)}


def call_block(call: ToolCall) -> Json:
    """Return the block of a tool call."""
    return {"type": CALL, "id": call.id, "name": call.name, "input": sent_arguments(call)}


def result_block(message: ToolMessage) -> Json:
    """Return the block of a call's result."""
    attached = list(said_blocks(message.text, message.attachments))
    return {
        "type": "tool_result",
        "tool_use_id": message.call,
        "content": attached if message.attachments else message.text,
        "is_error": message.failed,
    }


COUNTED: Final = frozenset(
    {
        "cache_control",
        "messages",
        "model",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
"""The fields of the counting endpoint, which refuses all others."""
WEIGHTLESS: Final = frozenset(
    {
        "inference_geo",
        "max_tokens",
        "metadata",
        "service_tier",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""The fields that add no tokens to the prompt."""

PROMPT_CACHE: Final = "prompt_cache"
"""cueline's own parameter: whether the prompt is marked for the vendor's cache."""
CACHED: Final = {"cache_control": {"type": "ephemeral"}}


def request_body(agent: AgentSpec, messages: Iterable[bytes], *, is_vendor: bool = True) -> Json:
    """Return the JSON of a request for the next reply, as a stream.

    For a server that is not the vendor's, instructions are a plain text without marks, because
    some servers refuse a list of blocks as `system`. The parameter `prompt_cache` changes this.
    """
    is_marked = agent.parameters.get(PROMPT_CACHE, is_vendor)
    body: Json = {
        "model": agent.model,
        "max_tokens": agent.limits.max_output_tokens,
        "messages": conversation(messages),
        **{n: value for n, value in agent.parameters.items() if n not in OWN | {PROMPT_CACHE}},
    }
    if agent.tools:
        body["tools"] = [
            {"name": t.name, "description": t.description, "input_schema": t.parameters}
            for t in agent.tools
        ]
    if agent.instructions.strip():
        told = [{"type": "text", "text": agent.instructions}]
        body["system"] = told if is_marked else agent.instructions
    if is_marked:
        mark_for_cache(body)
    return body


def count_body(body: Json) -> Json | None:
    """Return the JSON of a request to count the prompt of *body*.

    Returns None if a part of it cannot be counted.
    """
    if not body.keys() <= COUNTED | WEIGHTLESS:
        return None
    return {name: body[name] for name in body.keys() & COUNTED}


def mark_for_cache(body: Json) -> None:
    """Mark the part of the prompt that the API should cache for the next request.

    The last message is marked for the next turn. The last message of the previous turn is
    marked because the API looks back over 20 blocks only, and a turn may have more calls.
    """
    users = [message for message in body["messages"] if message["role"] == "user"]
    prefix = body.get("system") or body.get("tools")
    for blocks in (prefix, *(message["content"] for message in users[-2:])):
        if blocks:
            blocks[-1] |= CACHED
