"""Calls OpenAI, or a server with its protocol."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import httpx2
from msgspec.structs import replace

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.providers.account import Account
from cueline.providers.http import HttpClient, bearer
from cueline.providers.openai.chat import ChatReply, chat_body
from cueline.providers.openai.content import Json
from cueline.providers.openai.responses import ResponsesReply, responses_body
from cueline.providers.openai.servers import (
    LLAMA_CPP,
    NO_IMAGES,
    USUAL,
    dialect_of,
    hid_tools,
    server_of,
    takes_tools,
)
from cueline.providers.patience import Patience, patience_of
from cueline.providers.tool_protocol import ToolProtocol

_LISTING: Final = Patience(total=10, chunk=10)


class OpenAIClient(HttpClient):
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        super().__init__(account, bearer(account))
        self._blind: set[str] = set()
        """The models that refused images."""
        self._able: set[str] = set()
        """The models of a llama.cpp whose templates support tools."""
        self._protocol = ToolProtocol(self._ask)

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        return await self._protocol.reply(request, deltas)

    async def _ask(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply.

        If the server refuses images for the model, the request is sent once more without images.
        """
        agent = request.agent
        if dialect_of(agent, self._account) == "responses":
            body = responses_body(agent, request.messages, server_of(agent, self._account))
            told = ResponsesReply(deltas, asked=agent.model)
            return await self.stream("/responses", body, patience_of(agent), told)
        seen = any(b'"kind":"image"' in message for message in request.messages)
        if seen and agent.model not in self._blind:
            try:
                return await self._chat(request, deltas)
            except ProviderRefusedError as error:
                if not NO_IMAGES.search(error.message):
                    raise
            self._blind.add(agent.model)
        return await self._chat(request, deltas, lacking=("images",) if seen else ())

    async def _chat(
        self, request: ModelRequest, deltas: DeltaSink, lacking: tuple[str, ...] = ()
    ) -> ModelReply:
        agent = request.agent
        server = server_of(agent, self._account)
        prefix = f"call_{request.turn}_"
        reply = ChatReply(server, deltas, asked=agent.model, prefix=prefix, lacking=lacking)
        body = chat_body(agent, request.messages, server, lacking=lacking)
        whole = await self.stream("/chat/completions", body, patience_of(agent), reply)
        if server is USUAL and hid_tools(agent, whole):
            self._protocol.learn(agent.model)
            return replace(whole, lacking=("tools", *whole.lacking))
        return whole

    async def _check_server(self, body: Json, headers: Mapping[str, str]) -> None:
        """Raise if a llama.cpp would silently drop the tools, because its template has none."""
        model = body["model"]
        if "tools" not in body or model in self._able or LLAMA_CPP not in headers.get("server", ""):
            return
        root = self._account.base_url.partition("?")[0].removesuffix("/v1")
        url, props = f"{root}/props?{httpx2.QueryParams(model=model)}", None
        with suppress(ProviderRefusedError, ProviderUnavailableError):
            props = await self._whole("GET", url, None, _LISTING)
        if not takes_tools(props):
            why = f"the template of {model} at this llama.cpp does not support tools"
            raise ProviderRefusedError("invalid_request", why)
        self._able.add(model)

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        listed = await self.get("/models", _LISTING)
        return sorted(model["id"] for model in listed["data"])
