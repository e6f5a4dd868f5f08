"""Collects a streamed reply of the Chat Completions dialect."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cueline.actors.model_port import DeltaSink, ModelReply, drop_delta
from cueline.errors import ProviderUnavailableError
from cueline.events.message import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.http import PartialReply
from cueline.providers.openai.chat_request import KEPT
from cueline.providers.openai.content import fault_in_stream, filtered, refusal, texts_of, usage_of
from cueline.providers.openai.servers import PROVIDER, THOUGHTS, Server
from cueline.providers.reading import is_object, tool_call, without_half

CUT: Final = "length"
FILTERED: Final = "content_filter"
FAILED: Final = "error"


@dataclass(slots=True)
class StreamedCall:
    """A tool call, as far as it came."""

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
    """A reply, as far as it came."""

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
        # Some send the usage with the last words, some after them, and one in a place of its own.
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

        Servers leave out index or id, or give one to several whole calls. Another id, another
        name, or another whole object begins another call; a call that comes twice is one.
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
        """Yield the tool calls; one that was cut off does not run."""
        for number, call in enumerate(self._calls):
            whole = tool_call(call.id or f"{self._prefix}{number}", call.name, call.arguments)
            last = call is self._calls[-1]
            yield without_half(whole, call.arguments) if cut and last else whole
