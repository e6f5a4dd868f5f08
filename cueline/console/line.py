"""One line of text for a terminal."""

from typing import Literal, NamedTuple

Tone = Literal["said", "agent", "thinking", "output", "doing", "good", "bad", "note", "dim"]
WIDTH = 160
"""The most characters of a foreign text in a line."""


class Line(NamedTuple):
    """One line, and its style."""

    tone: Tone
    text: str
