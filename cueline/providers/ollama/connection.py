"""Calls an Ollama server, and translates its errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.providers.account import Account
from cueline.providers.event_stream import json_lines
from cueline.providers.fault import Fault
from cueline.providers.http import HttpClient, bearer
from cueline.providers.ollama.reply import StreamedReply
from cueline.providers.ollama.request import ALL, Abilities, needed, request_body
from cueline.providers.patience import Patience, patience_of
from cueline.providers.tool_protocol import ToolProtocol

_NO_MODEL: Final = re.compile("model .*not found", re.IGNORECASE)
USUAL: Final = {"timeout_seconds": 1800.0, "chunk_timeout_seconds": 300.0}
"""A large model is loaded, and a long prompt read, before the first piece of a reply."""
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
        """Return what *model* can do; a server that does not say so gets the benefit."""
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
        """Let errors of a missing server or model say what to run."""
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
