"""Checks whether this process is in the foreground of its terminal."""

import os
import sys
from contextlib import suppress


def is_foreground() -> bool:
    """Whether this process gets the input of the terminal."""
    with suppress(OSError, ValueError):
        keyboard = sys.stdin.fileno()
        return sys.stdin.isatty() and os.tcgetpgrp(keyboard) == os.getpgrp()
    return False
