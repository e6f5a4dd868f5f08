"""The clock: the only source of time."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Returns the time, and waits; a test moves its own clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait for *seconds*."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def boot_seconds() -> float:
    """Return a time that continues while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
