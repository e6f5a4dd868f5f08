"""The Chat Completions dialect: its requests and streamed replies."""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cueline.actors.model_port import DeltaSink, ModelReply, drop_delta
from cueline.errors import ProviderUnavailableError
from cueline.events.agent import AgentSpec
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
    Usage,
    UserMessage,
)
from cueline.providers.event_stream import is_object, tool_call, without_half
from cueline.providers.http import PartialReply
from cueline.providers.openai.content import (
    Json,
    data_url,
    fault_in_stream,
    filtered,
    given,
    refusal,
    texts_of,
    usage_of,
)
from cueline.providers.openai.servers import PROVIDER, THOUGHTS, Server
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
        server: the differences of the server.
        lacking: the capabilities that the model lacks; without `images`, texts replace images.
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

    A result can contain only text, so its attachments follow the last result, in a message of
    the user.
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
    """Return the content of a message: without attachments a plain text, for old servers."""
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


CUT: Final = "length"
FILTERED: Final = "content_filter"
FAILED: Final = "error"


@dataclass(slots=True)
class StreamedCall:
    """A tool call, collected from the received pieces."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, piece: "StreamedCall") -> None:
        """Add the next piece of this call."""
        self.id = piece.id or self.id
        self.name = piece.name or self.name
        self.arguments += piece.arguments

    def is_before(self, piece: "StreamedCall") -> bool:
        """Whether *piece* begins another call."""
        pairs = (self.id, piece.id), (self.name, piece.name)
        is_another = any(ours and theirs and ours != theirs for ours, theirs in pairs)
        begins = bool(piece.name) and piece.arguments.startswith("{")
        return is_another or (begins and is_object(self.arguments))


class ChatReply(PartialReply):
    """The received part of a reply."""

    def __init__(self, server: Server, deltas: DeltaSink = drop_delta, **about: Any) -> None:
        """Begin a reply of a *server*; for the rest see `PartialReply`."""
        super().__init__(deltas, **about)
        self._server = server
        self._said = {"text": "", "thinking": ""}
        self._refusal = ""
        self._reason: str | None = None
        self._calls: list[StreamedCall] = []
        self._kept: list[Any] = []
        self._told: Mapping[str, Any] | None = None

    def add(self, piece: Any) -> None:
        if error := piece.get("error"):
            raise fault_in_stream(error)
        self._model = piece.get("model") or self._model
        # Some servers send the usage with the last text, some after it, and one in another field.
        usage = piece.get("usage") or (piece.get("x_groq") or {}).get("usage")
        self._told = usage or self._told
        for choice in piece.get("choices") or ():
            self._add_delta(choice.get("delta") or choice.get("message") or {})
            if reason := choice.get("finish_reason"):
                self._reason = reason
                self.ended = True

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        thoughts = next((delta[name] for name in THOUGHTS if delta.get(name)), "")
        for said in (*texts_of(thoughts, "thinking"), *texts_of(delta.get("content"))):
            self._said[said.kind] += said.text
            self._deltas(said)
        self._refusal += delta.get("refusal") or ""
        if self._server.kept:
            self._kept += delta.get(self._server.kept) or ()
        for call in delta.get("tool_calls") or ():
            self._add_call(call)

    def _add_call(self, told: Mapping[str, Any]) -> None:
        """Add a piece of a call.

        Servers omit the index or the id, or use one index for several whole calls. Another id,
        another name, or a further whole object begins a new call. A repeated call is one call.
        """
        index, function = told.get("index"), told.get("function") or {}
        said = function.get("arguments") or ""
        text = said if isinstance(said, str) else json.dumps(said)
        piece = StreamedCall(index, told.get("id") or "", function.get("name") or "", text)
        known = [call for call in self._calls if index is None or call.index == index]
        if piece.id and piece in known:
            return
        if not known or known[-1].is_before(piece):
            self._calls.append(piece)
        else:
            known[-1].add(piece)

    def end(self) -> None:
        # Some servers give no reason for the end.
        self.ended = self.ended or bool(self._said["text"] or self._calls or self._refusal)

    def _usage(self) -> Usage | None:
        return usage_of(self._told) if self._told else None

    def whole(self) -> ModelReply:
        if self._reason == FILTERED:
            raise filtered()
        self._check_ended()
        if self._reason == FAILED:
            raise ProviderUnavailableError("malformed_reply", "the stream ended before the reply")
        if self._refusal:
            raise refusal(self._refusal)
        cut = self._reason == CUT
        return self._made(self._content(), self._whole_calls(cut=cut), cut=cut)

    def _content(self) -> Iterator[Block]:
        if thoughts := self._said["thinking"]:
            yield ThinkingBlock(text=thoughts, provider=PROVIDER)
        if self._kept:
            yield OpaqueBlock(
                provider=PROVIDER, model=self._asked, data={"type": KEPT, KEPT: self._kept}
            )
        if text := self._said["text"]:
            yield TextBlock(text=text)

    def _whole_calls(self, *, cut: bool) -> Iterator[ToolCall]:
        """Yield the tool calls; a call that was cut off does not run."""
        for number, call in enumerate(self._calls):
            whole = tool_call(call.id or f"{self._prefix}{number}", call.name, call.arguments)
            last = call is self._calls[-1]
            yield without_half(whole, call.arguments) if cut and last else whole
