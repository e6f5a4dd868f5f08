"""Awaits foreign code that may raise its own `CancelledError`."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
GRACE_SECONDS = 5.0
"""Time that running effects have to finish before they are cancelled."""


async def isolate_cancellation(work: Awaitable[T]) -> T:
    """Await *work*; turn its own `CancelledError` into an error.

    A call that the host cancelled is started again and is no failure. A `CancelledError` from
    the foreign code is a failure.

    Raises:
        RuntimeError: the work raised `CancelledError` without being cancelled.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it raised CancelledError without being cancelled") from error
