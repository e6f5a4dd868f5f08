"""The keyboard of a terminal, key by key."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable
from contextlib import suppress

Heard = Callable[[bytes], None]


def is_ours() -> bool:
    """Whether what is typed is for this process, and not for a shell that it is behind."""
    with suppress(OSError, ValueError):
        keyboard = sys.stdin.fileno()
        return sys.stdin.isatty() and os.tcgetpgrp(keyboard) == os.getpgrp()
    return False


class Keyboard:
    """Has keys heard as they are pressed, without holding anything up.

    In the background they are the shell's: whoever reads there, or changes how
    they come, is stopped.
    """

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._number = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._number)

    def take(self) -> None:
        """Hear what is pressed from now on, where it is for us; to be called now and then."""
        if not is_ours():
            self._loop.remove_reader(self._number)
            return
        # Each time: a shell that had it meanwhile has set it as it likes it.
        mode = termios.tcgetattr(self._number)
        mode[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON)
        mode[tty.CC][termios.VMIN], mode[tty.CC][termios.VTIME] = 1, 0
        # Not by tty.setcbreak: that of Python 3.12.0 and 3.12.1 takes Enter away too,
        # and a shell that Ctrl-Z leads back to would hear no line.
        termios.tcsetattr(self._number, termios.TCSANOW, mode)
        self._loop.add_reader(self._number, self._read)
        # uvloop has it not block, and with it the screen and the shell that
        # started us: a terminal is one open file. Who is told to read need not.
        os.set_blocking(self._number, True)

    def forget(self) -> None:
        """Drop what was pressed and not heard yet."""
        if is_ours():
            termios.tcflush(self._number, termios.TCIFLUSH)

    def leave(self) -> None:
        """Hear nothing more, and give it back as it was."""
        self._loop.remove_reader(self._number)
        self.restore()

    def restore(self) -> None:
        """Give it back as it was."""
        if is_ours():
            termios.tcsetattr(self._number, termios.TCSADRAIN, self._before)

    def _read(self) -> None:
        sent = b""
        if is_ours():
            with suppress(OSError):  # the terminal has gone
                sent = os.read(self._number, 1024)
        if sent:
            self._heard(sent)
        else:
            self._loop.remove_reader(self._number)
