"""Waiting for a fact, which is the only thing that tests wait for."""

import asyncio
import time
from collections.abc import Callable

PAUSE_SECONDS = 0.005
PATIENCE_SECONDS = 120.0
"""What is certain to come may take so long: it is a verdict on nothing but a hang."""


def wait_until(condition: Callable[[], object], within: float = PATIENCE_SECONDS) -> None:
    """Return as soon as *condition* holds.

    Raises:
        AssertionError: it did not, in *within* seconds.
    """
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(PAUSE_SECONDS)


async def await_until(condition: Callable[[], object], within: float = PATIENCE_SECONDS) -> None:
    """Return as soon as *condition* holds, and let others run meanwhile.

    Raises:
        AssertionError: it did not, in *within* seconds.
    """
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within} s"
        await asyncio.sleep(PAUSE_SECONDS)
