"""Collects a streamed reply of Ollama."""

import json
from typing import Any

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, drop_delta
from cueline.events.message import Block, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.fault import fault_of
from cueline.providers.http import PartialReply
from cueline.providers.ollama.request import PROVIDER
from cueline.providers.reading import count_of, tool_call

CUT = "length"
COUNTED = ("prompt_eval_count", "eval_count")


class StreamedReply(PartialReply):
    """A reply, as far as it came."""

    def __init__(self, deltas: DeltaSink = drop_delta, **about: Any) -> None:
        super().__init__(deltas, **about)
        self._thoughts = self._text = self._reason = ""
        self._calls: list[ToolCall] = []
        self._told: dict[str, Any] = {}

    def add(self, piece: Any) -> None:
        if error := piece.get("error"):
            raise fault_of(500, None, str(error), {})
        self._model = piece.get("model") or self._model
        message = piece.get("message") or {}
        if thoughts := message.get("thinking"):
            self._thoughts += thoughts
            self._deltas(Delta("thinking", thoughts))
        if text := message.get("content"):
            self._text += text
            self._deltas(Delta("text", text))
        for call in message.get("tool_calls") or ():
            self._calls.append(self._call(call))
        if piece.get("done"):
            self._reason = piece.get("done_reason") or "stop"
            self._told = piece
            self.ended = True

    def _call(self, call: Any) -> ToolCall:
        function = call["function"]
        arguments = function.get("arguments") or {}
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call_id = call.get("id") or f"{self._prefix}{len(self._calls)}"
        return tool_call(call_id, function["name"], text)

    def _usage(self) -> Usage:
        read, written = (count_of(self._told.get(name)) for name in COUNTED)
        return Usage(input=read, output=written)

    def whole(self) -> ModelReply:
        self._check_ended()
        content: list[Block] = []
        if self._thoughts:
            content.append(ThinkingBlock(text=self._thoughts, provider=PROVIDER))
        if self._text:
            content.append(TextBlock(text=self._text))
        return self._made(content, self._calls, cut=self._reason == CUT)
