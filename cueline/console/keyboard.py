"""The keyboard of a terminal for prompt_toolkit."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prompt_toolkit.input.vt100 import Vt100Input

from cueline.console.foreground import is_foreground


class Keyboard(Vt100Input):
    """Reads each key at once; Ctrl-C, Ctrl-Z and Enter stay the terminal's own.

    In the background the shell has the keyboard: a process that reads or changes it there is
    stopped.
    """

    def __init__(self) -> None:
        super().__init__(sys.stdin)
        self._loop = asyncio.get_running_loop()
        self._before = termios.tcgetattr(self.fileno())
        self._pressed: Callable[[], None] | None = None
        self._reads = False

    def take(self) -> None:
        """Start reading keys; call this repeatedly in the foreground."""
        # Each time: a shell that had it meanwhile has set it as it likes it.
        mode = termios.tcgetattr(self.fileno())
        wanted = [*mode[: tty.LFLAG], mode[tty.LFLAG] & ~(termios.ECHO | termios.ICANON)]
        if wanted != mode[: tty.LFLAG + 1]:
            mode[: tty.LFLAG + 1] = wanted
            mode[tty.CC][termios.VMIN], mode[tty.CC][termios.VTIME] = 1, 0
            termios.tcsetattr(self.fileno(), termios.TCSANOW, mode)
        if not self._reads and self._pressed is not None:
            self._reads = True
            self._loop.add_reader(self.fileno(), self._pressed)
            # uvloop has it not block, and with it the screen and the shell that
            # started us: a terminal is one open file. Who is told to read need not.
            os.set_blocking(self.fileno(), True)

    def leave(self) -> None:
        """Stop reading keys."""
        if self._reads:
            self._reads = False
            self._loop.remove_reader(self.fileno())

    def forget(self) -> None:
        """Drop unread keys."""
        if is_foreground():
            termios.tcflush(self.fileno(), termios.TCIFLUSH)

    def restore(self) -> None:
        """Restore the terminal mode."""
        if is_foreground():
            termios.tcsetattr(self.fileno(), termios.TCSADRAIN, self._before)

    @contextmanager
    def attach(self, input_ready_callback: Callable[[], None]) -> Iterator[None]:
        """See `Vt100Input.attach`."""
        self._pressed = input_ready_callback
        try:
            yield
        finally:
            self.leave()

    @contextmanager
    def raw_mode(self) -> Iterator[None]:
        """See `Vt100Input.raw_mode`; `take` has set the mode."""
        try:
            yield
        finally:
            self.restore()
