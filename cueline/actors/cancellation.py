"""Awaits other people's code, whose `CancelledError` is not ours."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def isolate_cancellation(work: Awaitable[T]) -> T:
    """Await *work*, which may raise whatever it likes.

    What was cancelled is begun again, and does not count as a failure. So a
    `CancelledError` of its own, while nobody cancels us, is an error like any other.

    Raises:
        RuntimeError: it was one of its own.
    """
    try:
        return await work
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise RuntimeError("it raised CancelledError, and nobody had cancelled it") from error
