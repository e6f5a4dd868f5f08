"""Tells runners which results were recorded, so that they need not keep them."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from cueline.actors.runner import CallName, RunnerPort
from cueline.errors import CuelineError


class Receipts:
    """Receipts of all sessions of a host, sent many at once; best effort."""

    def __init__(self, find: Callable[[str], RunnerPort | None]) -> None:
        self._find = find
        self._unsent: list[CallName] = []
        self._sending: asyncio.Task[None] | None = None

    def add(self, names: Sequence[CallName]) -> None:
        """Have the runners told that the outcomes of these calls are recorded."""
        self._unsent.extend(names)
        if self._unsent and self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while self._unsent:
            unsent, self._unsent = self._unsent, []
            for name in unsent:
                port = self._find(name.runner)
                # A result that is not forgotten goes with its session's next turn.
                with suppress(CuelineError):
                    if port is not None:
                        await port.forget(name)
        self._sending = None

    def close(self) -> None:
        """Send no more."""
        if self._sending is not None:
            self._sending.cancel()
