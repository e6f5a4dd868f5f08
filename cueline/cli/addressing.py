"""What the commands have in common that want something of one session."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.client.client import Client
    from cueline.client.receipt import Receipt


@asynccontextmanager
async def client_for(path: LogUrl, name: str) -> AsyncIterator[tuple["Client", str]]:
    """Open the log to write, and look up the session that *name* stands for.

    Raises:
        UnknownSessionError: there is none; the message names some that are like it.
    """
    from cueline.client.client import open_client

    async with open_client(path) as client:
        yield client, await client.find(name)


def when_it_counts(log: LogUrl, receipt: "Receipt") -> str:
    """Return what to add to the news that something was put into a session's inbox."""
    from cueline.cli.running import resuming

    if receipt.read_by != "nobody":
        return ""
    way = resuming(log, receipt.session)
    return f"; nothing drives it now, it counts when it is next driven: `{way}`"
