"""Collects a streamed reply of the Responses dialect."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, drop_delta
from cueline.events.message import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.http import PartialReply
from cueline.providers.openai.content import fault_in_stream, filtered, refusal, usage_of
from cueline.providers.openai.responses_request import CALL, PHASE
from cueline.providers.openai.servers import PROVIDER
from cueline.providers.reading import tool_call, without_half

DELTAS: Final = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "thinking",
    "response.reasoning_text.delta": "thinking",
}
PARAGRAPH: Final = "\n\n"


class ResponsesReply(PartialReply):
    """A reply, as far as it came."""

    def __init__(self, deltas: DeltaSink = drop_delta, **about: Any) -> None:
        super().__init__(deltas, **about)
        self._items: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, str] = {}
        """Text or arguments of items that did not come whole."""
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
            content.pop()  # calls are at the end unless a place says otherwise
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
        """Yield the tool calls; one that was cut off does not run."""
        for index, item in items:
            if item["type"] == CALL:
                text = item.get("arguments") or self._texts.get(index, "")
                call = tool_call(item.get("call_id") or item.get("id") or "", item["name"], text)
                yield without_half(call, text) if cut and item is items[-1][1] else call
