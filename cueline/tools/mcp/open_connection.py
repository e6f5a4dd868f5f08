"""An open connection to an MCP server, and what the server says unasked."""

from contextlib import suppress

from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp_types import ElicitRequestParams, ElicitResult

from cueline.events.agent import ToolSpec


class OpenConnection:
    """An open connection."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.specs: dict[str, ToolSpec] = {}
        """The tools by target."""
        self.readers: set[str] = set()
        """The tools that are cueline's own."""
        self.is_stale = False
        """Whether the server has said that its list of tools changed."""

    async def watch(self) -> None:
        """Mark the list of tools as stale when the server says so, or may have said so unheard."""
        over = False
        with suppress(ListenNotSupportedError, MCPError):  # an earlier revision sends notifications
            while not over:
                with suppress(SubscriptionLost):
                    async with self.client.listen(tools_list_changed=True) as changes:
                        async for _ in changes:
                            self.is_stale = True
                    over = True
                self.is_stale = True


async def not_now(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Answer a server of an earlier revision, whose question cannot wait for a person."""
    del context, params
    return ElicitResult(action="cancel")
