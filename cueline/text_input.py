"""Reads text from a file or a pipe; refuses a device, which has no end."""

import os
import stat
from pathlib import Path
from typing import Final, TextIO

from cueline.errors import ConfigError

LONGEST: Final = 100 * 1024 * 1024
"""In characters; agents, goals and scripts are shorter."""
_HANDED: Final = {"/dev", "/dev/fd", "/proc/self/fd"}
"""Where the pipes of a shell's `<(…)` are, and stdin."""


def read_text_file(path: Path) -> str:
    """Return the text of the file at *path*, without a byte order mark; it raises as below."""
    refuse_endless(path)
    with path.open(encoding="utf-8-sig") as file:
        return read_to_end(file, str(path))


def refuse_endless(path: Path) -> None:
    """Raise if a read of *path* may wait for ever.

    Raises:
        ConfigError: it is a named pipe, a device or a socket.
        OSError: it cannot be looked at.
    """
    mode = path.stat().st_mode
    is_handed = stat.S_ISFIFO(mode) and str(path.parent) in _HANDED
    is_file = stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # an open says that it is a folder
    if not (is_file or is_handed or str(path) == os.devnull):
        raise ConfigError(str(path), "it is a named pipe, a device or a socket; name a file")


def read_to_end(source: TextIO, name: str) -> str:
    """Return the text of *source*.

    Raises:
        ConfigError: it is too long; the message has its *name*.
        OSError: it cannot be read.
        UnicodeDecodeError: it is no text.
    """
    text = source.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ConfigError(name, "it is longer than 100 MB")
    return text
