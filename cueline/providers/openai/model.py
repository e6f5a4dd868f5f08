"""OpenAI's models, and those of compatible servers, behind the `Model` port."""

from typing import TYPE_CHECKING

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.providers.account import Account
from cueline.providers.lazy_client import LazyClient

if TYPE_CHECKING:
    from cueline.providers.openai.connection import OpenAIClient


class OpenAIModel:
    """Calls OpenAI, or a server with its protocol; one instance serves many sessions."""

    def __init__(self, account: Account) -> None:
        self._client = LazyClient(lambda: connect(account))

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        """See `Model.reply`."""
        client = await self._client.connected()
        return await client.reply(request, deltas)

    async def close(self) -> None:
        """See `Model.close`."""
        await self._client.close()


def connect(account: Account) -> "OpenAIClient":
    """Import the HTTP client and create one."""
    from cueline.providers.openai.connection import OpenAIClient  # noqa: PLC0415 - it is slow

    return OpenAIClient(account)
