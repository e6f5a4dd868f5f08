"""Text from outside, read to its end: that of a file or a pipe is near, a device has none."""

from typing import Final, TextIO

from cueline.errors import ConfigError

LONGEST: Final = 100 * 1024 * 1024
"""In characters; no agent, goal or script is as long."""


def read_to_end(source: TextIO, name: str) -> str:
    """Return the text of *source*.

    Raises:
        ConfigError: its end does not come; the message says of what, by its *name*.
        OSError: it cannot be read.
        UnicodeDecodeError: it is no text.
    """
    text = source.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ConfigError(name, "it is longer than 100 MB")
    return text
