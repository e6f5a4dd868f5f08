"""Whether the terminal is this process's."""

import os
import sys
from contextlib import suppress


def is_foreground() -> bool:
    """Whether what is typed is for this process, and not for a shell that it is behind."""
    with suppress(OSError, ValueError):
        keyboard = sys.stdin.fileno()
        return sys.stdin.isatty() and os.tcgetpgrp(keyboard) == os.getpgrp()
    return False
