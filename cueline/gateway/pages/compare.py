"""Arranges the differences of two sessions for a page: in rows, and not more than fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, zip_longest
from typing import Any, Final, TypeVar

from markupsafe import escape

from cueline.client.compare import ComparedFile, ComparedLine, SessionDiff
from cueline.client.file_changes import FileDiff
from cueline.console.session_diff import change_text, compared_figures
from cueline.console.text import capped, one_line, visible
from cueline.projections.transcript import TranscriptLine

_LINES_BYTES: Final = 60_000
_FILES_BYTES: Final = 25_000
_AROUND_BYTES: Final = 450
"""The most bytes of the HTML around a text."""
_MARK_BYTES: Final = 32
"""The most bytes of the HTML around a line of a diff."""
_FOLDED: Final = 10
"""The most lines that a folded run of equal lines has; the last ones."""
_EXCERPT: Final = 100
"""The most characters of a folded line."""
_CHANGED_LINES: Final = 60
"""The most lines that are shown of what one session changed in a file."""
_WIDTH: Final = 200
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run of equal lines, or a line of one session beside a line of the other."""

    a: TranscriptLine | None = None
    b: TranscriptLine | None = None
    equal: tuple[tuple[TranscriptLine, str], ...] = ()
    """The last lines of a run of equal ones, each with the beginning of its text."""
    lines: int
    """How many lines of the comparison this row stands for."""

    def size(self) -> int:
        """Return at most how many bytes the row takes on a page."""
        texts = [each.text for each in (self.a, self.b) if each is not None]
        return _bytes(*texts, *(text for _, text in self.equal))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file, and what each session changed in it; None: nothing."""

    path: str
    a: str | None
    b: str | None

    def size(self) -> int:
        """Return at most how many bytes the file takes on a page."""
        return _bytes(self.path, self.a or "", self.b or "")


def comparison(found: SessionDiff) -> dict[str, Any]:
    """Return what the page of a comparison shows, and how much of it does not fit."""
    rows, files = list(rows_of(found.transcript)), [_file(each) for each in found.files]
    shown = _fitting(rows, Row.size, _LINES_BYTES)
    shown_files = _fitting(files, FileRow.size, _FILES_BYTES)
    return {
        "a": found.a,
        "b": found.b,
        "figures": compared_figures(found),
        "rows": shown,
        "more_lines": sum(each.lines for each in rows[len(shown) :]),
        "files": shown_files,
        "more_files": len(files) - len(shown_files),
        "differs": any(not each.equal for each in rows),
    }


def rows_of(compared: Sequence[ComparedLine]) -> Iterator[Row]:
    """Yield the rows of a comparison: runs of equal lines in one, others side by side."""
    for equal, group in groupby(compared, key=lambda each: each.side == "both"):
        run = list(group)
        if equal:
            folded = [each.line for each in run[-_FOLDED:]]
            texts = tuple((each, one_line(each.text, _EXCERPT)) for each in folded)
            yield Row(equal=texts, lines=len(run))
            continue
        sides = ([each.line for each in run if each.side == side] for side in ("a", "b"))
        for a, b in zip_longest(*sides):
            yield Row(a=a, b=b, lines=(a is not None) + (b is not None))


def _file(compared: ComparedFile) -> FileRow:
    return FileRow(path=compared.path, a=_change(compared.a), b=_change(compared.b))


def _change(change: FileDiff | None) -> str | None:
    if change is None:
        return None
    return "\n".join(capped(change_text(change), _CHANGED_LINES, _WIDTH))


def _fitting(rows: Sequence[T], size: Callable[[T], int], most: int) -> Sequence[T]:
    """Return the first rows, of *most* bytes together."""
    return rows[: sum(end <= most for end in accumulate(map(size, rows)))]


def _bytes(*texts: str) -> int:
    """Return at most how many bytes the texts take on a page, with the marks of their lines."""
    around = sum(_AROUND_BYTES + _MARK_BYTES * each.count("\n") for each in texts)
    return around + sum(len(escape(visible(each)).encode()) for each in texts)
