"""Builds Gemini's requests from neutral messages."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    Block,
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
from cueline.providers.patience import OWN
from cueline.providers.transcript import note_of, sent_arguments, text_of, transcript

PROVIDER: Final = "gemini"
Json = dict[str, Any]

SIGNATURE: Final = "thoughtSignature"
UNSIGNED: Final = "skip_thought_signature_validator"
"""The signature of a call that another model made: without one, the API refuses the request.

See "FAQs" in ai.google.dev/gemini-api/docs/thought-signatures.
"""
IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/webp"})
_INLINE: Final = ("application/pdf", "audio/", "video/")


def conversation(messages: Iterable[Message]) -> list[Json]:
    """Return the messages in Gemini's form, with alternating roles."""
    contents: list[Json] = []
    names: dict[str, str] = {}
    for message in messages:
        role, parts = "user", []
        match message:
            case AssistantMessage(calls=calls):
                names |= {call.id: sent_name(call) for call in calls}
                role, parts = "model", answer_parts(message)
            case ToolMessage(call=call):
                parts = list(result_parts(message, names.get(call, "")))
            case UserMessage(text=text, attachments=attached):
                parts = [*map(attachment_part, attached)]
                if text.strip() or not parts:
                    parts.append({"text": text})
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    for content in contents:
        if content["role"] == "user":
            # Results first: the API compares their number with the calls. The sort is stable.
            content["parts"].sort(key=lambda part: "functionResponse" not in part)
    return contents


def answer_parts(message: AssistantMessage) -> list[Json]:
    """Return the parts of a reply, calls last."""
    parts: list[Json] = []
    for block in message.content:
        add_block(block, parts)
    signed = any(call.opaque for call in message.calls)
    for index, call in enumerate(message.calls):
        asked = {"id": call.id, "name": sent_name(call), "args": sent_arguments(call)}
        part: Json = {"functionCall": asked}
        if call.opaque is not None:
            part |= call.opaque.data
        elif index == 0 and not signed:
            part[SIGNATURE] = UNSIGNED
        parts.append(part)
    return parts


def add_block(block: Block, parts: list[Json]) -> None:
    """Add *block* to the parts of a reply; a signature belongs to the text before it."""
    match block:
        case TextBlock(text=text):
            parts.append({"text": text})
        case ThinkingBlock(text=text, signature=signature) if signature:
            parts.append({"text": text, "thought": True, SIGNATURE: signature})
        case ThinkingBlock():
            pass  # a summary of thoughts, which the API does not need
        case OpaqueBlock(data=data):
            if data.keys() == {SIGNATURE} and parts and parts[-1].keys() == {"text"}:
                parts[-1] |= data
            elif data.keys() == {SIGNATURE}:
                parts.append({"text": "", **data})
            else:
                parts.append(dict(data))


def sent_name(call: ToolCall) -> str:
    """Return the name to send for a call; a name begins with a letter."""
    return call.name if call.name[:1].isalpha() else f"_{call.name}"


def result_parts(message: ToolMessage, name: str) -> Iterator[Json]:
    """Yield the part of a call's result, and the parts of its images and documents."""
    told = {"error" if message.failed else "output": message.text}
    yield {"functionResponse": {"id": message.call, "name": name, "response": told}}
    yield from map(attachment_part, message.attachments)


def attachment_part(attachment: Attachment) -> Json:
    """Return the part of an image or document; a text replaces unsupported content."""
    match attachment:
        case ImageBlock(media_type=media_type) if media_type not in IMAGES:
            return {"text": f"({media_type} left out: this model takes no such images)"}
        case FileBlock(media_type=media_type, name=name) if media_type.startswith("text/"):
            return {"text": f"{name}:\n{text_of(attachment)}"}
        case FileBlock(media_type=media_type) if not media_type.startswith(_INLINE):
            return {"text": note_of(attachment)}
        case (
            ImageBlock(media_type=media_type, data=data)
            | FileBlock(media_type=media_type, data=data)
        ):
            return {"inlineData": {"mimeType": media_type, "data": data}}


def sent_tools(tools: Sequence[ToolSpec]) -> list[Json]:
    """Return the declarations of *tools*, with unchanged schemas."""
    declared = [
        {"name": t.name, "description": t.description, "parametersJsonSchema": t.parameters}
        for t in tools
    ]
    return [{"functionDeclarations": declared}]


TOP: Final = frozenset(
    {
        "cachedContent",
        "generationConfig",
        "labels",
        "safetySettings",
        "serviceTier",
        "store",
        "toolConfig",
    }
)
"""The fields of a request that an agent may set; its other parameters are of `generationConfig`."""
_UNSAFE: Final = re.compile(r"[^\w./-]", re.ASCII)


def model_path(model: str) -> str:
    """Return the path of a model, whose name may begin with `models/` or `tunedModels/`."""
    name = model if "/" in model else f"models/{model}"
    return f"/v1beta/{_UNSAFE.sub(lambda part: quoted(part[0]), name)}"


def quoted(text: str) -> str:
    """Return *text* as a part of an address."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def request_body(agent: AgentSpec, messages: Iterable[bytes]) -> Json:
    """Return the JSON of a request for the next reply."""
    given = {name: value for name, value in agent.parameters.items() if name not in OWN}
    config = given.get("generationConfig")
    body: Json = {name: value for name, value in given.items() if name in TOP}
    body["generationConfig"] = {
        **{name: value for name, value in given.items() if name not in TOP},
        **(config if isinstance(config, dict) else {}),
        "maxOutputTokens": agent.limits.max_output_tokens,
    }
    if agent.tools:
        body["tools"] = sent_tools(agent.tools)
    if agent.instructions.strip():
        body["systemInstruction"] = {"parts": [{"text": agent.instructions}]}
    heard = transcript(messages, provider=PROVIDER, model=agent.model)
    # Last, so that the text of a request is a prefix of the next one's.
    body["contents"] = conversation(heard)
    return body


def count_body(agent: AgentSpec, body: Json) -> Json:
    """Return the JSON of a request to count the prompt of *body*."""
    model = model_path(agent.model).removeprefix("/v1beta/")
    return {"generateContentRequest": {"model": model, **body}}
