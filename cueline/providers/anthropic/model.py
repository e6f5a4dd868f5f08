"""Anthropic's models behind the `Model` port."""

import asyncio
from typing import TYPE_CHECKING

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.providers.account import Account
from cueline.providers.anthropic.conversation import Json
from cueline.providers.anthropic.request import count_body, request_body
from cueline.providers.patience import patience_of

if TYPE_CHECKING:
    from cueline.providers.anthropic.connection import AnthropicClient


class AnthropicModel:
    """Calls Anthropic, or a server with its protocol; one instance serves many sessions."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._connection: AnthropicClient | None = None
        self._opening = asyncio.Lock()

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        connection = await self._connected()
        return await connection.send(self._body(request), patience_of(request.agent), deltas)

    async def count(self, request: ModelRequest) -> int | None:
        """See `TokenCounter.count`."""
        body = count_body(self._body(request))
        if body is None:
            return None
        connection = await self._connected()
        return await connection.count(body, patience_of(request.agent).of_a_count)

    async def close(self) -> None:
        """See `Model.close`; calls in flight end first, and a later one connects anew."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.retire()

    def _body(self, request: ModelRequest) -> Json:
        return request_body(request.agent, request.messages, is_vendor=self._account.is_vendor)

    async def _connected(self) -> "AnthropicClient":
        async with self._opening:
            if self._connection is None:
                # A thread, because the first time takes two seconds, and other sessions use this
                # loop.
                self._connection = await asyncio.to_thread(connect, self._account)
            return self._connection


def connect(account: Account) -> "AnthropicClient":
    """Import the SDK and create its client."""
    from cueline.providers.anthropic.connection import AnthropicClient  # noqa: PLC0415 - see _connected

    return AnthropicClient(account)


def end_of(model: str) -> str | None:
    """Return the day on which the vendor retires *model*, as text; None if the SDK knows none."""
    from anthropic.resources.messages import DEPRECATED_MODELS  # noqa: PLC0415 - see _connected

    return DEPRECATED_MODELS.get(model)
