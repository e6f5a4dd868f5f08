"""Ollama's models behind the `Model` port."""

from typing import TYPE_CHECKING

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.providers.account import Account
from cueline.providers.lazy_client import LazyClient

if TYPE_CHECKING:
    from cueline.providers.ollama.connection import OllamaClient


class OllamaModel:
    """Calls an Ollama server; one instance serves many sessions."""

    def __init__(self, account: Account) -> None:
        self._client = LazyClient(lambda: connect(account))

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        client = await self._client.connected()
        return await client.reply(request, deltas)

    async def close(self) -> None:
        """See `Model.close`."""
        await self._client.close()


def connect(account: Account) -> "OllamaClient":
    """Import the HTTP client and create one."""
    from cueline.providers.ollama.connection import OllamaClient  # noqa: PLC0415 - it is slow

    return OllamaClient(account)
