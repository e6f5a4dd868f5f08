"""A vendor's models behind the `Model` port; the first call creates the vendor's client."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from cueline.actors.model_port import DeltaSink, ModelReply, ModelRequest, drop_delta
from cueline.providers.account import Account


class Client(Protocol):
    """The connections to one account; see `Model`."""

    def reply(self, request: ModelRequest, deltas: DeltaSink) -> Awaitable[ModelReply]: ...

    def models(self) -> Awaitable[list[str]]:
        """Return the names of the server's models."""

    def retire(self) -> Awaitable[None]:
        """Close the connections as soon as no call needs them."""


class CountingClient(Client, Protocol):
    """The connections to one account at a vendor that counts tokens; see `TokenCounter`."""

    def count(self, request: ModelRequest) -> Awaitable[int | None]: ...


C = TypeVar("C", bound=Client)


def client_of(where: str, account: Account) -> Any:
    """Import the class *where*, `module:Client`, which may be slow, and create a client."""
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)(account)


class LazyModel(Generic[C]):
    """The models of one account; one instance serves many sessions; see `Model`.

    *connect* may import packages for up to two seconds.
    """

    def __init__(self, connect: Callable[[Account], C], account: Account) -> None:
        self._connect = connect
        self._account = account
        self._client: C | None = None
        self._opening = asyncio.Lock()

    @classmethod
    def of(cls, client: str) -> Callable[[Account, object], Self]:
        """Return the factory of an account's models; *client* is the class of its client."""
        return lambda account, _: cls(partial(client_of, client), account)

    async def reply(self, request: ModelRequest, deltas: DeltaSink = drop_delta) -> ModelReply:
        client = await self._connected()
        return await client.reply(request, deltas)

    async def close(self) -> None:
        """See `Model.close`; calls in flight end first, and a later call connects again."""
        client, self._client = self._client, None
        if client is not None:
            await client.retire()

    async def _connected(self) -> C:
        async with self._opening:
            if self._client is None:
                # In a thread, because other sessions use this loop.
                self._client = await asyncio.to_thread(self._connect, self._account)
            return self._client


class CountingModel(LazyModel[CountingClient]):
    """The models of one account at a vendor that counts tokens; see `TokenCounter`."""

    async def count(self, request: ModelRequest) -> int | None:
        client = await self._connected()
        return await client.count(request)


async def names_of_models(where: str, account: Account) -> list[str]:
    """Return the names of the server's models, by the class *where* of its client."""
    client = cast("Client", client_of(where, account))
    try:
        return await client.models()
    finally:
        await client.retire()
