"""Ctrl-C and SIGTERM: once asks to pause, twice leaves at once."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

from cueline.cli.failure import Exit

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """What the signals do while a session is driven."""

    def __init__(self, once: Callable[[], None], leave: Callable[[], str]) -> None:
        """Call *once* at the first; at the second *leave*, and say what it returns."""
        self._once = once
        self._leave = leave
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._caught) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, _number: int, _frame: FrameType | None) -> None:
        if not self._asked:
            self._asked = True
            self._once()
            return
        # Not sys.exit: nothing may hold this up, neither a lock nor an
        # effect. What was recorded is recorded, and the rest is found again.
        sys.stderr.write(f"\n{self._leave()}\n")
        sys.stderr.flush()
        os._exit(Exit.LEFT)
