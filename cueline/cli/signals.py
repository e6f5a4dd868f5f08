"""Ctrl-C, SIGTERM and the end of the terminal: once asks to pause, twice leaves at once."""

import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from cueline.cli.failure import Exit

SHOW_CURSOR = "\x1b[?25h"


class Interrupts:
    """What the signals do while a session is driven."""

    def __init__(
        self, once: Callable[[], object], leave: Callable[[], str], *, goes_on: bool
    ) -> None:
        """Call *once* at the first; at the second *leave*, and say what it returns.

        Where the session *goes_on* without us, the end of the terminal is no more than ours.
        """
        self._once = once
        self._leave = leave
        self._goes_on = goes_on
        self._asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        heard = ending_signals() - ({signal.SIGHUP} if self._goes_on else set())
        self._before = {number: signal.signal(number, self._caught) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _caught(self, number: int, _frame: FrameType | None) -> None:
        hung_up = number == signal.SIGHUP
        if hung_up:
            leave_terminal()
        if not self._asked:
            self._asked = True
            self._once()
            return
        if hung_up:
            return  # the system says it, and the shell as well
        # Not sys.exit: nothing may hold this up, neither a lock nor an
        # effect. What was recorded is recorded, and the rest is found again.
        words = f"{SHOW_CURSOR if sys.stderr.isatty() else ''}\n{self._leave()}\n"
        with suppress(OSError):  # not sys.stderr: the signal may have come while that writes
            os.write(sys.stderr.fileno(), words.encode(errors="replace"))
        os._exit(Exit.LEFT)


def ending_signals() -> set[signal.Signals]:
    """Return what ends a command in order; with `nohup` the end of its terminal does not."""
    endings = {signal.SIGINT, signal.SIGTERM}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        endings.add(signal.SIGHUP)
    return endings


def show_cursor() -> None:
    """Have the cursor seen again, where something that is drawn over and over has hidden it."""
    if sys.stderr.isatty():
        sys.stderr.write(SHOW_CURSOR)


def leave_terminal() -> None:
    """Write to nowhere from now on where the terminal is gone: what fails to write ends."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        with suppress(OSError):  # whoever began us may have closed it
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
                os.dup2(nowhere, number)
    os.close(nowhere)
