"""The read model `transcript`: a session's messages, calls and results, line by line."""

from dataclasses import dataclass
from sqlite3 import Connection
from typing import ClassVar

from cueline.projections.read_model import Names, ask, select
from cueline.projections.usage import PARENT

EXCERPT = 2000
"""The kept length of a text, in characters; the log has all of it."""


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """One line of a transcript."""

    TABLE: ClassVar[str] = "transcript"
    KEY: ClassVar[Names] = ("stream", "version", "part")
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    version: int
    part: int
    """The place among the lines of one event, from 0."""
    kind: str
    """`user`, `assistant`, `summary`, `call`, `result`, `wait`, `takeover` or `end`."""
    effect: str
    name: str
    """The name of the tool, the lane of a message, or the kind of a wait or end."""
    text: str
    size: int
    """The length of the whole text, in characters."""
    failed: bool
    recorded_us: int

    @property
    def cut(self) -> bool:
        """Whether the log has more of the text."""
        return self.size > len(self.text)


def transcript(db: Connection, stream: str) -> list[TranscriptLine]:
    """Return the transcript of a session; a fork's begins with its parent's."""
    past: list[tuple[str, int]] = []
    until = -1
    name: str | None = stream
    while name is not None and name not in (seen for seen, _ in past):
        past.insert(0, (name, until))
        name, version = next(iter(ask(db, "sessions", PARENT, [name])), (None, 0))
        if name:
            until = version if until < 0 else min(until, version)
    return [line for part in past for line in _lines(db, *part)]


def _lines(db: Connection, stream: str, until: int) -> list[TranscriptLine]:
    fits = "WHERE stream = ? AND (? < 0 OR version <= ?) ORDER BY version, part"
    return select(db, TranscriptLine, fits, [stream, until, until])
