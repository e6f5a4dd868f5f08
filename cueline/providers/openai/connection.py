"""Calls OpenAI, or a server with its protocol."""

from typing import Final

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest
from cueline.providers.account import Account
from cueline.providers.http import HttpClient
from cueline.providers.openai.chat_reply import ChatReply
from cueline.providers.openai.request import request_body
from cueline.providers.openai.responses_reply import ResponsesReply
from cueline.providers.openai.servers import dialect_of, server_of
from cueline.providers.patience import Patience, patience_of

_LISTING: Final = Patience(total=10, chunk=10)


class OpenAIClient:
    """A client of one account, for any number of calls at a time."""

    def __init__(self, account: Account) -> None:
        key = account.key.get_secret_value()
        self._account = account
        self._http = HttpClient(account, {"Authorization": f"Bearer {key}"} if key else {})

    async def reply(self, request: ModelRequest, deltas: DeltaSink) -> ModelReply:
        """Return the whole reply; it raises as `Model.reply`."""
        agent = request.agent
        body = request_body(agent, request.messages, self._account)
        patience = patience_of(agent)
        if dialect_of(agent, self._account) == "responses":
            told = ResponsesReply(agent.model, deltas)
            return await self._http.stream("/responses", body, patience, told)
        reply = ChatReply(agent.model, server_of(agent, self._account), deltas)
        return await self._http.stream("/chat/completions", body, patience, reply)

    async def models(self) -> list[str]:
        """Return the names of the server's models."""
        listed = await self._http.get("/models", _LISTING)
        return sorted(model["id"] for model in listed["data"])

    async def retire(self) -> None:
        """Close the connections as soon as no call needs them."""
        await self._http.retire()
