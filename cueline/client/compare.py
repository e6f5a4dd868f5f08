"""Compares two sessions: what was said and called, what changed in files, what it cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Literal

from cueline.client.file_changes import FileDiff
from cueline.client.show import SessionDetails
from cueline.projections.transcript import TranscriptLine

Side = Literal["both", "a", "b"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    """A line of a transcript, and whose it is."""

    side: Side
    line: TranscriptLine


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile:
    """A file that at least one of two sessions changed, to another content than the other."""

    path: str
    a: FileDiff | None
    """What the first session changed in it; None: nothing."""
    b: FileDiff | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDiff:
    """The differences of two sessions."""

    a: SessionDetails
    b: SessionDetails
    transcript: tuple[ComparedLine, ...]
    """All lines of both, in order; `both` is equal in both."""
    files: tuple[ComparedFile, ...]
    """The files that differ, by path."""


def compared_lines(
    a: Sequence[TranscriptLine], b: Sequence[TranscriptLine]
) -> Iterator[ComparedLine]:
    """Yield the lines of two transcripts; the first session's before the second's."""
    ours, theirs = ([_content(each) for each in side] for side in (a, b))
    past = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False))
    )
    yield from (ComparedLine(side="both", line=each) for each in a[:past])
    a, b = a[past:], b[past:]
    # Lines that are repeated often are junk to it: else 1,000 lines can take seconds.
    matcher = SequenceMatcher(None, ours[past:], theirs[past:])
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            yield from (ComparedLine(side="both", line=each) for each in a[i:j])
            continue
        yield from (ComparedLine(side="a", line=each) for each in a[i:j])
        yield from (ComparedLine(side="b", line=each) for each in b[k:m])


def _content(line: TranscriptLine) -> tuple[str, str, str, bool]:
    return line.kind, line.name, line.text, line.failed


def compared_files(a: Sequence[FileDiff], b: Sequence[FileDiff]) -> Iterator[ComparedFile]:
    """Yield the files that two sessions left with different contents, by path."""
    ours, theirs = ({each.path: each for each in side} for side in (a, b))
    for path in sorted({*ours, *theirs}):
        one, other = ours.get(path), theirs.get(path)
        if one is None or other is None or one.after_digest != other.after_digest:
            yield ComparedFile(path=path, a=one, b=other)
