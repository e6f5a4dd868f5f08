"""One call to a Ray actor: bounded, and cancelled where its caller is."""

import asyncio
import random
from typing import Any

import ray
from ray.exceptions import (
    ActorDiedError,
    ActorHandleNotFoundError,
    ActorUnavailableError,
    ActorUnschedulableError,
    RayTaskError,
    TaskCancelledError,
)

from cueline.errors import ClusterError, CuelineError

Handle = Any
"""A handle of Ray makes its methods up as they are called."""

DEAD = (ActorDiedError, ActorUnschedulableError, ActorHandleNotFoundError)
"""The actor is no more, and never will be again."""
UNCLEAR = (ActorUnavailableError, TimeoutError, TaskCancelledError)
"""The call may or may not have been executed."""

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
        # Ray goes on with a call that nobody awaits any more.
        ray.cancel(ref)
        raise
    except RayTaskError as error:
        if isinstance(error.cause, CuelineError):
            raise error.cause from None
        reason = f"{type(error.cause).__name__}: {error.cause}"
        raise ClusterError("an actor failed", reason) from error


def poll_seconds() -> float:
    """Return how long a long poll may hang; spread, so that not all return at once."""
    return random.uniform(*_POLL_SECONDS)  # noqa: S311 - a spread, not a secret


async def poll(method: Any, *asked: object) -> Any:
    """Return what the long poll *method* brings; its last argument is how long it may hang."""
    seconds = poll_seconds()
    return await call(method.remote(*asked, seconds), seconds + _SLACK_SECONDS)
