"""The Responses dialect: its requests and streamed replies."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, drop_delta
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
    Usage,
    UserMessage,
)
from cueline.providers.event_stream import tool_call, without_half
from cueline.providers.http import PartialReply
from cueline.providers.openai.content import (
    Json,
    data_url,
    fault_in_stream,
    filtered,
    given,
    refusal,
    usage_of,
)
from cueline.providers.openai.servers import PROVIDER, UNTHINKING, Server
from cueline.providers.transcript import note_of, transcript, written_arguments

CALL: Final = "function_call"
PHASE: Final = "phase"
REASONING: Final = "reasoning"
ENCRYPTED: Final = "reasoning.encrypted_content"
PDF: Final = "application/pdf"


def responses_body(agent: AgentSpec, messages: Iterable[bytes], server: Server) -> Json:
    """Return the JSON of a request to *server* for the next reply, as a stream.

    The server stores nothing, so thoughts arrive encrypted, and are sent back with each request.
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

    The server refuses a thought at the end.
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


DELTAS: Final = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}
PARAGRAPH: Final = "\n\n"


class ResponsesReply(PartialReply):
    """The received part of a reply."""

    def __init__(self, deltas: DeltaSink = drop_delta, **about: Any) -> None:
        super().__init__(deltas, **about)
        self._items: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, str] = {}
        """Text or arguments of incomplete items."""
        self._places: dict[Any, int] = {}
        self._response: Mapping[str, Any] = {}

    def add(self, piece: Any) -> None:
        match piece.get("type"):
            case "response.created" | "response.in_progress":
                self._model = piece["response"].get("model") or self._model
            case "response.output_item.added" | "response.output_item.done":
                self._items[self._place(piece)] = piece["item"]
            case "response.function_call_arguments.delta":
                self._keep(piece)
            case "response.reasoning_summary_part.added" if piece.get("summary_index"):
                self._deltas(Delta("thinking", PARAGRAPH))
            case kind if kind in DELTAS:
                if kind == "response.output_text.delta":
                    self._keep(piece)
                self._deltas(Delta(DELTAS[kind], piece["delta"]))  # type: ignore[arg-type]
            case "response.completed" | "response.incomplete":
                self._response = piece["response"]
                self._model = self._response.get("model") or self._model
                self.ended = True
            case "response.failed":
                raise fault_in_stream(piece["response"].get("error"))
            case kind if kind == "error" or "error" in piece:
                raise fault_in_stream(piece.get("error") or piece)
            case _:
                pass

    def _keep(self, piece: Any) -> None:
        index = self._place(piece)
        self._texts[index] = self._texts.get(index, "") + piece["delta"]

    def _place(self, piece: Any) -> int:
        """Return the place of a piece's item; some servers name the item only."""
        item = piece.get("item") or {}
        named = piece.get("item_id") or item.get("id") or item.get("call_id")
        index = piece.get("output_index")
        return self._places.setdefault(named, len(self._places)) if index is None else int(index)

    def _usage(self) -> Usage | None:
        told = self._response.get("usage")
        return usage_of(told) if told else None

    def whole(self) -> ModelReply:
        self._check_ended()
        reason = (self._response.get("incomplete_details") or {}).get("reason")
        if reason == "content_filter":
            raise filtered()
        cut = self._response.get("status") == "incomplete"
        items = sorted(self._items.items())
        content = [block for index, item in items for block in self._blocks(index, item)]
        while content and content[-1] == self._opaque({"type": CALL}):
            content.pop()  # calls without a recorded place are at the end
        return self._made(content, self._calls(items, cut=cut), cut=cut)

    def _blocks(self, index: int, item: Mapping[str, Any]) -> Iterator[Block]:
        """Yield the neutral blocks of an item."""
        match item["type"]:
            case "message":
                pieces = item.get("content") or []
                if refused := [p["refusal"] for p in pieces if p.get("type") == "refusal"]:
                    raise refusal("".join(refused))
                if item.get(PHASE):
                    yield self._opaque({"type": PHASE, PHASE: item[PHASE]})
                said = "".join(p["text"] for p in pieces if p.get("type") == "output_text")
                if text := said or self._texts.get(index, ""):
                    yield TextBlock(text=text)
            case "reasoning":
                # A summary, or the thoughts of an open model.
                pieces = [*(item.get("summary") or ()), *(item.get("content") or ())]
                if thoughts := PARAGRAPH.join(part["text"] for part in pieces):
                    yield ThinkingBlock(text=thoughts, provider=PROVIDER)
                if item.get("encrypted_content"):
                    yield self._opaque(dict(item))
            case "function_call":
                yield self._opaque({"type": CALL})
            case _:
                yield self._opaque(dict(item))

    def _opaque(self, data: dict[str, Any]) -> OpaqueBlock:
        return OpaqueBlock(provider=PROVIDER, model=self._asked, data=data)

    def _calls(self, items: list[tuple[int, Any]], *, cut: bool) -> Iterator[ToolCall]:
        """Yield the tool calls; a call that was cut off does not run."""
        for index, item in items:
            if item["type"] == CALL:
                text = item.get("arguments") or self._texts.get(index, "")
                call = tool_call(item.get("call_id") or item.get("id") or "", item["name"], text)
                yield without_half(call, text) if cut and item is items[-1][1] else call
