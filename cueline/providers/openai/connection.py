"""Calls OpenAI, or a server with its protocol."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.errors import ProviderRefusedError
from cueline.providers.account import Account
from cueline.providers.http import HttpClient
from cueline.providers.openai.chat_reply import ChatReply
from cueline.providers.openai.chat_request import chat_body
from cueline.providers.openai.responses_reply import ResponsesReply
from cueline.providers.openai.responses_request import responses_body
from cueline.providers.openai.servers import LACKS, dialect_of, server_of
from cueline.providers.patience import TOOL_PROTOCOL, Patience, is_prompted, patience_of

_LISTING: Final = Patience(total=10, chunk=10)


class OpenAIClient:
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        key = account.key.get_secret_value()
        self._account = account
        self._lacks: defaultdict[str, set[str]] = defaultdict(set)
        """The capabilities that models turned out to lack."""
        self._http = HttpClient(account, {"Authorization": f"Bearer {key}"} if key else {})

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`.

        If the server finds out that the model lacks a capability, the request is sent once
        more without it.
        """
        agent = request.agent
        if dialect_of(agent, self._account) == "responses":
            body = responses_body(agent, request.messages)
            told = ResponsesReply(agent.model, deltas)
            return await self._http.stream("/responses", body, patience_of(agent), told)
        lacks = self._lacks[agent.model]
        needs = needed(request)
        while True:
            try:
                return await self._chat(request, deltas, [n for n in needs if n in lacks])
            except ProviderRefusedError as error:
                found = {n for n in needs if LACKS[n].search(error.message)} - lacks
                if not found:
                    raise
                lacks |= found

    async def _chat(
        self, request: ModelRequest, deltas: DeltaSink, lacking: Sequence[str]
    ) -> ModelReply:
        agent = request.agent
        server = server_of(agent, self._account)
        reply = ChatReply(
            agent.model,
            server,
            deltas,
            prefix=f"call_{request.turn}_",
            prompted=agent.tools if is_prompted(agent, able="tools" not in lacking) else (),
            lacking=tuple(lacking),
        )
        body = chat_body(agent, request.messages, server, lacking=lacking)
        return await self._http.stream("/chat/completions", body, patience_of(agent), reply)

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        listed = await self._http.get("/models", _LISTING)
        return sorted(model["id"] for model in listed["data"])

    async def retire(self) -> None:
        """Close the connections as soon as no call needs them."""
        await self._http.retire()


def needed(request: ModelRequest) -> list[str]:
    """Return the capabilities that *request* needs, and a model may lack."""
    tools = bool(request.agent.tools) and TOOL_PROTOCOL not in request.agent.parameters
    images = any(b'"kind":"image"' in message for message in request.messages)
    return [name for name, is_needed in (("tools", tools), ("images", images)) if is_needed]
