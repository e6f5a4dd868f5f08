"""Calls Ray actors with a time limit, and starts the actors that answer."""

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorHandleNotFoundError,
    ActorUnschedulableError,
    RayError,
    RayTaskError,
)

from cueline.clock import SystemClock
from cueline.errors import ClusterError, CuelineError, StaleOrderError
from cueline.events.stream import stream_name

Said = TypeVar("Said")
Handle = Any
"""The type of an actor's handle, which creates its methods when they are used."""

DEAD = (ActorDiedError, ActorUnschedulableError, ActorHandleNotFoundError)
"""The errors of an actor that has ended for good."""
UNCLEAR = (RayError, TimeoutError)
"""The errors of a call that may or may not have been executed. Catch after `DEAD`."""

LOOK_SECONDS = 3.0
"""The time without an answer after which the actor may be frozen."""
ANSWER_SECONDS = 5.0
"""The time within which a living actor answers a ping, even if it is busy."""
PAGE_BYTES = 1024 * 1024
"""The approximate size of the pages of long answers."""
ALIVE = 2
"""The local state of an actor that has started."""
_POLL_SECONDS = (20.0, 40.0)
_SLACK_SECONDS = 10.0


async def call(ref: Any, seconds: float) -> Any:
    """Return the result of the remote call *ref* within *seconds*.

    Raises the actor's own error, or one of `DEAD` or `UNCLEAR`; a `ClusterError` means a bug in
    the actor.
    """
    # Awaiting the reference itself leaks memory if many wait in one loop (ray#45895).
    future = asyncio.wrap_future(ref.future())
    try:
        async with asyncio.timeout(seconds):
            return await future
    except (TimeoutError, asyncio.CancelledError):
        # Ray continues a call that is no longer awaited, so cancel the call; not if Ray is shut
        # down, since `cancel` would start Ray again.
        if ray.is_initialized():
            ray.cancel(ref)
        raise
    except RayTaskError as error:
        if isinstance(error.cause, CuelineError):
            raise error.cause from None
        reason = f"{type(error.cause).__name__}: {error.cause}"
        raise ClusterError("an actor failed", reason) from error


async def ask_head(question: Callable[[], Said]) -> Said:
    """Return the answer of Ray's head to *question*, which blocks while the head is away.

    *question* runs in a daemon thread, so a process can exit without the answer.
    """
    answered: Future[Said] = Future()
    answered.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            answered.set_result(question())
        except Exception as error:  # noqa: BLE001 - every error goes to the caller
            answered.set_exception(error)

    Thread(target=ask, daemon=True).start()
    return await asyncio.wrap_future(answered)


def poll_seconds() -> float:
    """Return the duration of a long poll; randomized, so that not all polls return at once."""
    return random.uniform(*_POLL_SECONDS)  # noqa: S311 - a spread, not a secret


async def poll(method: Any, *asked: object, at_most: float = math.inf) -> Any:
    """Return the result of the long poll *method*; its last argument is its duration."""
    seconds = min(poll_seconds(), at_most)
    return await call(method.remote(*asked, seconds), seconds + _SLACK_SECONDS)


@contextmanager
def end_frozen_actor(actor: Handle) -> Iterator[None]:
    """Kill *actor* if it is frozen while the block waits for it; Ray restarts it.

    Ray notices a dead process, but not a frozen one. Calls to the actor may be repeated, so
    the kill of an actor that only looked frozen is harmless.
    """
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    # A timer, not a task: almost every call is answered long before.
    timer = loop.call_later(
        LOOK_SECONDS, lambda: watching.append(loop.create_task(_end_frozen(actor)))
    )
    try:
        yield
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()


async def _end_frozen(actor: Handle) -> None:
    clock = SystemClock()
    while True:
        # A starting actor answers no call, and may take long. No public call returns this state;
        # Ray's own libraries use the same method.
        if actor._get_local_state() == ALIVE:  # noqa: SLF001 - see above
            try:
                with suppress(RayError, CuelineError):
                    await call(actor.__ray_ready__.remote(), ANSWER_SECONDS)
            except TimeoutError:
                ray.kill(actor, no_restart=False)
        await clock.sleep(LOOK_SECONDS)


DISPATCHER = stream_name("dispatcher", "main")


class EpochFence:
    """Accepts the highest epoch seen so far, and refuses lower ones."""

    def __init__(self, incarnation: str) -> None:
        self._incarnation = incarnation
        self._highest = 0

    def check(self, epoch: int) -> None:
        """Raise if a later dispatcher than that of *epoch* has sent an order.

        Raises:
            StaleOrderError: stop; another dispatcher has taken over.
        """
        if epoch < self._highest:
            raise StaleOrderError(self._incarnation, DISPATCHER, epoch, self._highest)
        self._highest = epoch


What = TypeVar("What")


class NotificationBuffer(Generic[What]):
    """Keeps messages until they are read; at most the last *most*."""

    def __init__(self, most: int | None = None) -> None:
        self._things: deque[What] = deque(maxlen=most)
        self._some = asyncio.Event()

    def add(self, thing: What) -> None:
        """Add a message."""
        self._things.append(thing)
        self._some.set()

    async def take(self, seconds: float) -> list[What]:
        """Wait for messages, and return all; empty after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._some.wait()
        self._some.clear()
        told = list(self._things)
        self._things.clear()
        return told
