"""Calls an actor that may be away for a moment: repeats calls, and gathers batches."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from cueline.clock import SystemClock
from cueline.cluster.ray_call import DEAD, UNCLEAR, Handle, call, end_frozen_actor

PATIENCE_SECONDS = 20.0
"""How long calls are repeated while an actor is away; Ray restarts it within two seconds."""
CALL_SECONDS = 60.0
_AGAIN_SECONDS = 0.05

Item = TypeVar("Item")


class Proxy:
    """Calls one actor, and repeats the call while the actor is away: each call may be repeated."""

    def __init__(
        self,
        find: Callable[[], Awaitable[Handle]] | None,
        handle: Handle = None,
        *,
        patience: float = PATIENCE_SECONDS,
        within: float = CALL_SECONDS,
        interval: float = _AGAIN_SECONDS,
        retried: tuple[type[Exception], ...] = UNCLEAR,
    ) -> None:
        self._find = find
        """Returns the actor, or its successor; None if there is none."""
        self._handle = handle
        self._patience, self._within, self._interval = patience, within, interval
        self._retried = retried

    async def call_again(self, method: str, *asked: object) -> Any:
        """Call *method* until it answers; return the answer.

        Raises the error of the last call if the actor stays away.
        """
        clock, deadline = SystemClock(), time.monotonic() + self._patience
        while True:
            try:
                return await self._call(method, *asked)
            except self._retried as error:
                if isinstance(error, DEAD):
                    self._handle = None
                    if self._find is None:
                        raise
                if time.monotonic() > deadline:
                    raise
            await clock.sleep(self._interval)

    async def _call(self, method: str, *asked: object) -> Any:
        actor = await self._found()
        with end_frozen_actor(actor):
            return await call(getattr(actor, method).remote(*asked), self._within)

    async def _found(self) -> Handle:
        if self._handle is None and self._find is not None:
            self._handle = await self._find()
        return self._handle


class Outbox(Generic[Item]):
    """Sends all items of one pass of the event loop in one call.

    During a call the next batch gathers: under load, the calls themselves are the delay.
    """

    def __init__(self, send: Callable[[list[Item]], Awaitable[None]], most: int = 10**9) -> None:
        self._send = send
        self._most = most
        self._items: list[Item] = []
        self._sending: asyncio.Task[None] | None = None

    def add(self, item: Item) -> None:
        """Add *item* to the next batch; `flush` sends it."""
        self._items.append(item)

    def flush(self) -> None:
        """Send all items, after all runnable tasks have added theirs."""
        if self._items and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._drain())

    async def sent(self) -> None:
        """Wait until the batches that are being sent have been answered."""
        if self._sending is not None:
            await asyncio.wait([self._sending])

    async def _drain(self) -> None:
        while self._items:
            batch, self._items = self._items[: self._most], self._items[self._most :]
            await self._send(batch)
