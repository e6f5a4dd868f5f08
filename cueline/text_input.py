"""Reads text from a file or a pipe; refuses a device, which has no end."""

from typing import Final, TextIO

from cueline.errors import ConfigError

LONGEST: Final = 100 * 1024 * 1024
"""In characters; agents, goals and scripts are shorter."""


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
