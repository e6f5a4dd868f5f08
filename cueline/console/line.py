"""One line for a reader of a terminal."""

from typing import Literal, NamedTuple

Tone = Literal["said", "agent", "thinking", "output", "doing", "good", "bad", "note", "dim"]
WIDTH = 160
"""So many characters of a text that is not ours go into a line."""


class Line(NamedTuple):
    """One line, and how it is meant."""

    tone: Tone
    text: str
