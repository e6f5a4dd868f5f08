"""Builds requests of the Responses dialect from neutral messages."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cueline.events.agent import AgentSpec
from cueline.events.message import (
    AssistantMessage,
    Attachment,
    FileBlock,
    ImageBlock,
    OpaqueBlock,
    TextBlock,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from cueline.providers.openai.content import Json, data_url, given
from cueline.providers.openai.servers import PROVIDER, UNTHINKING, Server
from cueline.providers.transcript import note_of, transcript, written_arguments

CALL: Final = "function_call"
PHASE: Final = "phase"
REASONING: Final = "reasoning"
ENCRYPTED: Final = "reasoning.encrypted_content"
PDF: Final = "application/pdf"


def responses_body(agent: AgentSpec, messages: Iterable[bytes], server: Server) -> Json:
    """Return the JSON of a request to *server* for the next reply, as a stream.

    The server stores nothing, so thoughts come encrypted, and go back with each request.
    """
    body: Json = {
        "model": agent.model,
        "stream": True,
        "store": False,
        "max_output_tokens": agent.limits.max_output_tokens,
    }
    if not agent.model.startswith(UNTHINKING):
        body["include"] = [ENCRYPTED]
    if agent.output is not None:
        shape = {"type": "json_schema", "name": "output", "schema": agent.output, "strict": False}
        body["text"] = {"format": shape}
    body |= given(agent)
    if agent.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in agent.tools
        ]
    if agent.instructions.strip():
        body["instructions"] = agent.instructions
    # Last, so that the text of a request is a prefix of the next one's.
    body["input"] = list(items(messages, agent.model, server))
    return body


def items(messages: Iterable[bytes], model: str, server: Server) -> Iterator[Json]:
    """Yield the items of a conversation."""
    for message in transcript(messages, provider=PROVIDER, model=model):
        match message:
            case AssistantMessage():
                yield from answer_items(message, server)
            case ToolMessage(call=call, text=text, attachments=attachments):
                pieces = list(content(text, attachments))
                output = pieces if attachments else text
                yield {"type": "function_call_output", "call_id": call, "output": output}
            case UserMessage(text=text, attachments=attachments):
                yield {"role": "user", "content": list(content(text, attachments))}


def answer_items(message: AssistantMessage, server: Server) -> Iterator[Json]:
    """Yield the items of an answer; calls without a place are at the end.

    The server refuses a thought that nothing follows.
    """
    calls = deque(call_item(call, server) for call in message.calls)
    told: list[Json] = []
    mark: Json = {}
    for block in message.content:
        match block:
            case OpaqueBlock(data={"type": "function_call"}):
                told += [calls.popleft()] if calls else []
            case OpaqueBlock(data={"type": "phase", "phase": phase}):
                mark = {PHASE: phase}
            case OpaqueBlock(data=data) if data.get("type") != "reasoning_details":
                told.append(dict(data))
            case TextBlock(text=text):
                part = {"type": "output_text", "text": text, "annotations": []}
                told.append({"type": "message", "role": "assistant", "content": [part], **mark})
                mark = {}
            case _:
                pass
    told += calls
    while told and told[-1].get("type") == REASONING:
        told.pop()
    yield from told


def call_item(call: ToolCall, server: Server) -> Json:
    """Return the item of a tool call."""
    arguments = written_arguments(call, unparsed=server.leaves_unparsed)
    return {"type": CALL, "call_id": call.id, "name": call.name, "arguments": arguments}


def content(text: str, attachments: Sequence[Attachment]) -> Iterator[Json]:
    """Yield the pieces of a message or result."""
    for attachment in attachments:
        match attachment:
            case ImageBlock():
                yield {"type": "input_image", "image_url": data_url(attachment)}
            case FileBlock(media_type=media_type, name=name) if media_type == PDF:
                yield {"type": "input_file", "filename": name, "file_data": data_url(attachment)}
            case FileBlock():
                yield {"type": "input_text", "text": note_of(attachment)}
    if text.strip():
        yield {"type": "input_text", "text": text}
