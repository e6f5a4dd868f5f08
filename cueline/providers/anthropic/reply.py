"""Collects a streamed reply."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from anthropic.types import RawContentBlockDelta, RawMessageStreamEvent

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, drop_delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.anthropic.request import PLACE, PROVIDER
from cueline.providers.event_stream import tool_call, without_half

COUNTED: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation_input_tokens",
}

CUT: Final = "max_tokens"


@dataclass(slots=True)
class StreamedBlock:
    """One block of a reply, collected from the received pieces."""

    start: dict[str, Any]
    deltas: DeltaSink
    text: str = ""
    """Text, thoughts or JSON, by the block's type."""
    signature: str = ""
    whole: bool = False

    def add(self, delta: RawContentBlockDelta) -> None:
        """Add the next piece."""
        match delta.type:
            case "text_delta":
                self.text += delta.text
                self.deltas(Delta("text", delta.text))
            case "thinking_delta":
                self.text += delta.thinking
                self.deltas(Delta("thinking", delta.thinking))
            case "signature_delta":
                self.signature += delta.signature
            case "input_json_delta":
                self.text += delta.partial_json
            case _:  # citations: the text is complete without them
                pass

    def content(self) -> Block:
        """Return the block's content."""
        match self.start["type"]:
            case "tool_use":
                return PLACE
            case "text":
                return TextBlock(text=self.start.get("text", "") + self.text)
            case "thinking":
                thoughts = self.start.get("thinking", "") + self.text
                signature = self.start.get("signature", "") + self.signature
                return ThinkingBlock(text=thoughts, signature=signature, provider=PROVIDER)
            case _:
                asked = {"input": json.loads(self.text)} if self.text else {}
                return OpaqueBlock(provider=PROVIDER, data={**self.start, **asked})

    def call(self) -> ToolCall:
        """Return the block's tool call."""
        return tool_call(self.start["id"], self.start["name"], self.text, self.start.get("input"))


@dataclass(slots=True)
class StreamedReply:
    """The received part of a reply."""

    deltas: DeltaSink = drop_delta
    model: str = ""
    stop_reason: str | None = None
    stop_details: object = None
    ended: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    blocks: list[StreamedBlock] = field(default_factory=list)
    latest: dict[int, StreamedBlock] = field(default_factory=dict)
    """The blocks by index; a gateway may use one index for several blocks in turn."""

    def add(self, event: RawMessageStreamEvent) -> None:
        """Add the next piece; ignore unknown kinds."""
        match event.type:
            case "message_start":
                # A gateway that retried sends the new reply from its start.
                self.blocks.clear()
                self.stop_reason = self.stop_details = None
                self.ended = False
                self.model = event.message.model or ""
                self.count(event.message.usage)
            case "content_block_start":
                block = StreamedBlock(event.content_block.to_dict(), self.deltas)
                self.blocks.append(block)
                self.latest[event.index] = block
            case "content_block_delta":
                self.latest[event.index].add(event.delta)
            case "content_block_stop":
                self.latest[event.index].whole = True
            case "message_delta":
                # The content stays: a gateway may send the usage once more, alone.
                self.stop_reason = event.delta.stop_reason or self.stop_reason
                self.stop_details = event.delta.stop_details or self.stop_details
                self.count(event.usage)
            case "message_stop":
                self.ended = True

    def count(self, usage: object) -> None:
        """Update the usage; a value that *usage* does not contain stays."""
        for ours, theirs in COUNTED.items():
            value = getattr(usage, theirs, None)
            if value is not None:
                self.counts[ours] = value

    @property
    def used(self) -> dict[str, int] | None:
        """The final usage, if it was sent; None before the end."""
        if self.stop_reason is None or not self.counts:
            return None
        try:
            return Usage(**self.counts).model_dump()
        except ValueError:
            return None

    def whole(self) -> ModelReply:
        """Return the reply.

        Raises:
            ProviderUnavailableError: a part is missing; try again.
            ProviderRefusedError: the model declined.
        """
        if self.stop_reason == "refusal":
            category = getattr(self.stop_details, "category", None) or "no category given"
            raise ProviderRefusedError("refused", f"the model declined to answer ({category})")
        broken = not self.ended or not all(block.whole for block in self.blocks)
        if broken or self.stop_reason is None:
            raise ProviderUnavailableError("malformed_reply", "the stream ended before the reply")
        content = [block.content() for block in self.blocks]
        while content and content[-1] is PLACE:
            content.pop()  # calls without a recorded place are at the end
        return ModelReply(
            content=tuple(content),
            calls=tuple(self.calls()),
            stop_reason=self.stop_reason,
            usage=Usage(**(self.used or {})),  # unreadable usage is estimated
            model=self.model,
        )

    def calls(self) -> Iterator[ToolCall]:
        """Yield the tool calls; a call that was cut off does not run."""
        for block in self.blocks:
            if block.start["type"] == "tool_use":
                call = block.call()
                last = block is self.blocks[-1] and self.stop_reason == CUT
                yield without_half(call, block.text) if last else call
