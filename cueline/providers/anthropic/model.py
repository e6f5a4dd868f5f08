"""Anthropic's models behind the `Model` port."""

from typing import TYPE_CHECKING

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.providers.account import Account
from cueline.providers.anthropic.conversation import Json
from cueline.providers.anthropic.request import count_body, request_body
from cueline.providers.lazy_client import LazyClient
from cueline.providers.patience import patience_of

if TYPE_CHECKING:
    from cueline.providers.anthropic.connection import AnthropicClient


class AnthropicModel:
    """Calls Anthropic, or a server with its protocol; one instance serves many sessions."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._client = LazyClient(lambda: connect(account))

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        client = await self._client.connected()
        return await client.send(self._body(request), patience_of(request.agent), deltas)

    async def count(self, request: ModelRequest) -> int | None:
        """See `TokenCounter.count`."""
        body = count_body(self._body(request))
        if body is None:
            return None
        client = await self._client.connected()
        return await client.count(body, patience_of(request.agent).of_a_count)

    async def close(self) -> None:
        """See `Model.close`; calls in flight end first, and a later one connects anew."""
        await self._client.close()

    def _body(self, request: ModelRequest) -> Json:
        return request_body(request.agent, request.messages, is_vendor=self._account.is_vendor)


def connect(account: Account) -> "AnthropicClient":
    """Import the SDK and create its client."""
    from cueline.providers.anthropic.connection import AnthropicClient  # noqa: PLC0415 - it is slow

    return AnthropicClient(account)


def end_of(model: str) -> str | None:
    """Return the day on which the vendor retires *model*, as text; None if the SDK knows none."""
    from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415 - it is slow

    return DEPRECATED_MODELS.get(model)
