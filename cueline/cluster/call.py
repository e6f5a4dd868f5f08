"""One call to a Ray actor: bounded, and cancelled where its caller is."""

import asyncio
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, TypeVar

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorHandleNotFoundError,
    ActorUnschedulableError,
    RayError,
    RayTaskError,
)

from cueline.clock import SystemClock
from cueline.errors import ClusterError, CuelineError

Said = TypeVar("Said")
Handle = Any
"""A handle of Ray makes its methods up as they are called."""

DEAD = (ActorDiedError, ActorUnschedulableError, ActorHandleNotFoundError)
"""The actor is no more, and never will be again."""
UNCLEAR = (RayError, TimeoutError)
"""The call may or may not have been executed, whatever else Ray says. To be caught after `DEAD`."""

LOOK_SECONDS = 3.0
"""After so long without an answer, whoever waits looks whether the actor is frozen."""
ANSWER_SECONDS = 5.0
"""One that lives answers a ping within that, whatever it does."""
PAGE_BYTES = 1024 * 1024
"""What may be long is answered in pages of about so much."""
_ALIVE = 2
_POLL_SECONDS = (20.0, 40.0)
_SLACK_SECONDS = 10.0


async def call(ref: Any, seconds: float) -> Any:
    """Return what the remote call *ref* brings, within *seconds*.

    Raises the callee's own error, or one of `DEAD` or `UNCLEAR`; a `ClusterError`
    stands for a bug there.
    """
    # Awaiting the reference itself leaks where many wait for the same loop (ray#45895).
    future = asyncio.wrap_future(ref.future())
    try:
        async with asyncio.timeout(seconds):
            return await future
    except (TimeoutError, asyncio.CancelledError):
        # Ray goes on with a call that nobody awaits any more. Where it has been
        # shut down, it would start itself again to cancel it.
        if ray.is_initialized():
            ray.cancel(ref)
        raise
    except RayTaskError as error:
        if isinstance(error.cause, CuelineError):
            raise error.cause from None
        reason = f"{type(error.cause).__name__}: {error.cause}"
        raise ClusterError("an actor failed", reason) from error


async def ask_head(question: Callable[[], Said]) -> Said:
    """Return what Ray's head says to *question*, which blocks for as long as that is away.

    No process waits for the answer when it ends, as it would for a thread of the loop's.
    """
    answered: Future[Said] = Future()
    answered.set_running_or_notify_cancel()

    def ask() -> None:
        try:
            answered.set_result(question())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            answered.set_exception(error)

    Thread(target=ask, daemon=True).start()
    return await asyncio.wrap_future(answered)


def poll_seconds() -> float:
    """Return how long a long poll may hang; spread, so that not all return at once."""
    return random.uniform(*_POLL_SECONDS)  # noqa: S311 - a spread, not a secret


async def poll(method: Any, *asked: object) -> Any:
    """Return what the long poll *method* brings; its last argument is how long it may hang."""
    seconds = poll_seconds()
    return await call(method.remote(*asked, seconds), seconds + _SLACK_SECONDS)


@contextmanager
def end_frozen_actor(actor: Handle) -> Iterator[None]:
    """End *actor* if it is frozen while it is waited for in here; it is one that Ray restarts.

    Ray sees that a process has died, and nobody else sees that one is frozen:
    whoever waits for the only one of its kind would wait for as long as it is.
    It may be asked everything twice, so to end one that only looked frozen does no harm.
    """
    watching: list[asyncio.Task[None]] = []
    loop = asyncio.get_running_loop()
    # A timer, not a task: almost every call has its answer long before.
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
        # One that starts answers nobody, and may take its time. There is no
        # public way to ask that costs no call; Ray's own libraries ask so.
        if actor._get_local_state() == _ALIVE:  # noqa: SLF001 - as said
            try:
                with suppress(RayError, CuelineError):
                    await call(actor.__ray_ready__.remote(), ANSWER_SECONDS)
            except TimeoutError:
                ray.kill(actor, no_restart=False)
        await clock.sleep(LOOK_SECONDS)
