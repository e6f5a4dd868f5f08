"""Waits for a fact; tests wait for nothing else."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS = 0.005
PATIENCE_SECONDS = 120.0
"""The longest wait for a fact that is certain to come; only a hang exceeds it."""


def wait_until(condition: Callable[[], object], within: float = PATIENCE_SECONDS) -> None:
    """Return as soon as *condition* holds.

    Raises:
        AssertionError: it did not, in *within* seconds.
    """
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(PAUSE_SECONDS)


async def await_answer(
    ask: Callable[[], Awaitable[T | None]], within: float = PATIENCE_SECONDS
) -> T:
    """Return the first answer of *ask* that is not None; other tasks run meanwhile.

    Raises:
        AssertionError: there was none, in *within* seconds.
    """
    deadline = time.monotonic() + within
    while (answer := await ask()) is None:
        assert time.monotonic() < deadline, f"not within {within} s"
        await asyncio.sleep(PAUSE_SECONDS)
    return answer


async def await_until(condition: Callable[[], object], within: float = PATIENCE_SECONDS) -> None:
    """Return as soon as *condition* holds; other tasks run meanwhile.

    Raises:
        AssertionError: it did not, in *within* seconds.
    """
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        await asyncio.sleep(PAUSE_SECONDS)
