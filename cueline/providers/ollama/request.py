"""Builds Ollama's requests from neutral messages."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec import Struct

from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolMessage,
    UserMessage,
)
from cueline.providers.patience import OWN, TOOL_PROTOCOL
from cueline.providers.transcript import function_tools, sent_arguments, transcript

PROVIDER: Final = "ollama"
Json = dict[str, Any]

TOP: Final = frozenset(
    {"format", "keep_alive", "logprobs", "options", "shift", "think", "top_logprobs", "truncate"}
)
"""The fields of a request that an agent may set; its other parameters are options of the model."""
WHOLE: Final[Json] = {"truncate": False, "shift": False}
"""The field that makes a prompt that is too long an error, instead of cutting it silently."""


class Abilities(Struct, frozen=True):
    """The abilities of one model."""

    tools: bool = True
    images: bool = True
    thinking: bool = True


ALL: Final = Abilities()


def needed(agent: AgentSpec, messages: Iterable[bytes]) -> tuple[str, ...]:
    """Return the abilities that the request needs and a model may lack."""
    needs = {
        "tools": bool(agent.tools) and TOOL_PROTOCOL not in agent.parameters,
        "images": any(b'"kind":"image"' in message for message in messages),
        "thinking": bool(agent.parameters.get("think")),
    }
    return tuple(name for name, is_needed in needs.items() if is_needed)


def request_body(agent: AgentSpec, messages: Iterable[bytes], able: Abilities = ALL) -> Json:
    """Return the JSON of a request for the next reply, as a stream."""
    given = {name: value for name, value in agent.parameters.items() if name not in OWN}
    body: Json = {"model": agent.model, "stream": True, **WHOLE}
    body |= {name: value for name, value in given.items() if name in TOP - {"options"}}
    if not able.thinking:
        body.pop("think", None)
    options = given.get("options")
    body["options"] = {
        **{name: value for name, value in given.items() if name not in TOP},
        **(options if isinstance(options, dict) else {}),
        "num_predict": agent.limits.max_output_tokens,
    }
    if agent.tools:
        body["tools"] = function_tools(agent)
    heard = transcript(
        messages, provider=PROVIDER, model=agent.model, images=able.images, files=False
    )
    told = agent.instructions
    system = [{"role": "system", "content": told}] if told.strip() else []
    # Last, so that the text of a request is a prefix of the next one's.
    body["messages"] = [*system, *conversation(heard)]
    return body


def conversation(messages: Iterable[Message]) -> Iterator[Json]:
    """Yield the messages in Ollama's form."""
    names: dict[str, str] = {}
    for message in messages:
        match message:
            case AssistantMessage():
                names |= {call.id: call.name for call in message.calls}
                yield answer(message)
            case ToolMessage(call=call, text=text, attachments=attached):
                name = names.get(call, "")
                told = {"role": "tool", "content": text, "tool_name": name, "tool_call_id": call}
                yield told | images(attached)
            case UserMessage(text=text, attachments=attached):
                yield {"role": "user", "content": text, **images(attached)}


def answer(message: AssistantMessage) -> Json:
    """Return a reply of the model in Ollama's form."""
    said = [block.text for block in message.content if isinstance(block, TextBlock)]
    thought = [block.text for block in message.content if isinstance(block, ThinkingBlock)]
    told: Json = {"role": "assistant", "content": "\n\n".join(said)}
    if thought:
        told["thinking"] = "\n\n".join(thought)
    if message.calls:
        told["tool_calls"] = [
            {"id": call.id, "function": {"name": call.name, "arguments": sent_arguments(call)}}
            for call in message.calls
        ]
    return told


def images(attachments: Iterable[Attachment]) -> Json:
    """Return the field `images`; empty if no attachment is an image."""
    data = [attached.data for attached in attachments if isinstance(attached, ImageBlock)]
    return {"images": data} if data else {}
