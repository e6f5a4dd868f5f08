"""Whether a person is there to watch and to answer, and what was piped in."""

import os
import sys
from contextlib import suppress
from getpass import getuser

from cueline.errors import ConfigError


def is_attended() -> bool:
    """Whether this process has a terminal for itself, to show and to ask."""
    with suppress(OSError, ValueError):
        keyboard = sys.stdin.fileno()
        # In the background, taking the keyboard would stop the process.
        ours = sys.stdin.isatty() and os.tcgetpgrp(keyboard) == os.getpgrp()
        return ours and sys.stdout.isatty()
    return False


def who() -> str:
    """Return the name of the person at the keyboard, as this machine knows it."""
    try:
        return getuser()
    except (OSError, KeyError):
        return str(os.getuid())


def text_or_stdin(text: str) -> str:
    """Return *text*, or what was piped in for `-`.

    Raises:
        ConfigError: there is no text; say something.
    """
    said = sys.stdin.read().strip() if text == "-" else text
    if not said.strip():
        raise ConfigError("the text", "is empty; say something")
    return said
