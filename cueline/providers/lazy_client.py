"""A client of a vendor that is made at the first call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Client(Protocol):
    """The connections to one account."""

    def retire(self) -> Awaitable[None]:
        """Close the connections as soon as no call needs them."""
        ...


C = TypeVar("C", bound=Client)


class LazyClient(Generic[C]):
    """Makes a client when it is needed; importing what it needs takes up to two seconds."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._client: C | None = None
        self._opening = asyncio.Lock()

    async def connected(self) -> C:
        """Return the client."""
        async with self._opening:
            if self._client is None:
                # In a thread, because other sessions use this loop.
                self._client = await asyncio.to_thread(self._connect)
            return self._client

    async def close(self) -> None:
        """Close the connections; calls in flight end first, and a later one connects anew."""
        client, self._client = self._client, None
        if client is not None:
            await client.retire()
