"""Calls an Ollama server, and translates its errors."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from cueline.actors.model_port import Delta, DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.message import Block, TextBlock, ThinkingBlock, ToolCall, Usage
from cueline.providers.account import Account
from cueline.providers.event_stream import count_of, json_lines, tool_call
from cueline.providers.fault import Fault, fault_of
from cueline.providers.http import HttpClient, PartialReply, bearer
from cueline.providers.ollama.request import ALL, PROVIDER, Abilities, needed, request_body
from cueline.providers.patience import Patience, patience_of
from cueline.providers.tool_protocol import ToolProtocol

CUT = "length"
COUNTED = ("prompt_eval_count", "eval_count")


class StreamedReply(PartialReply):
    """The received part of a reply."""

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


_NO_MODEL: Final = re.compile("model .*not found", re.IGNORECASE)
USUAL: Final = {"timeout_seconds": 1800.0, "chunk_timeout_seconds": 300.0}
"""The longest wait for the first piece of a reply, while the server loads the model."""
_LISTING: Final = Patience(total=10, chunk=10)


class OllamaClient(HttpClient):
    """A client of one server, for any number of calls at a time."""

    pieces_of = staticmethod(json_lines)

    def __init__(self, account: Account) -> None:
        super().__init__(account, bearer(account))
        self._known: dict[str, Abilities] = {}
        self._protocol = ToolProtocol(self._ask)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        agent, model = request.agent, request.agent.model
        with self._helpful(model):
            if needed(agent, request.messages):
                able = await self._abilities(model, patience_of(agent, USUAL))
                if not able.tools:
                    self._protocol.learn(model)
            return await self._protocol.reply(request, deltas)

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        with self._helpful(""):
            listed = await self.get("/api/tags", _LISTING)
        return [model["name"] for model in listed["models"]]

    async def _ask(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        agent = request.agent
        able = self._known.get(agent.model, ALL)
        lacking = tuple(
            name
            for name in needed(agent, request.messages)
            if name != "tools" and not getattr(able, name)
        )
        reply = StreamedReply(deltas, prefix=f"call_{request.turn}_", lacking=lacking)
        body = request_body(agent, request.messages, able)
        return await self.stream("/api/chat", body, patience_of(agent, USUAL), reply)

    async def _abilities(self, model: str, patience: Patience) -> Abilities:
        """Return the abilities of *model*; all of them if the server does not report any."""
        if model not in self._known:
            try:
                shown = await self.post("/api/show", {"model": model}, patience)
            except ProviderRefusedError as error:
                if _NO_MODEL.search(error.message):
                    raise
                shown = None
            listed = shown.get("capabilities") if isinstance(shown, dict) else None
            self._known[model] = abilities(listed) if isinstance(listed, list) else ALL
        return self._known[model]

    @contextmanager
    def _helpful(self, model: str) -> Iterator[None]:
        """Add the command to run to errors of a missing server or model."""
        url = self._account.base_url
        try:
            yield
        except ProviderUnavailableError as error:
            if error.kind != "network" or error.used is None:
                raise
            fix = "start it with `ollama serve`, or set OLLAMA_HOST to its address"
            raise _with_message(error, f"no Ollama server at {url}: {fix}") from error
        except ProviderRefusedError as error:
            if not _NO_MODEL.search(error.message):
                raise
            fix = f"run `ollama pull {model}`, or name another model"
            raise _with_message(error, f"{url} has no model {model!r}: {fix}") from error


def abilities(listed: list[object]) -> Abilities:
    """Return the abilities in a server's list of capabilities."""
    return Abilities(
        tools="tools" in listed, images="vision" in listed, thinking="thinking" in listed
    )


def _with_message(error: Fault, message: str) -> Fault:
    told = f"{message} ({error.message})"
    return type(error)(error.kind, told, error.retry_after, error.used)
