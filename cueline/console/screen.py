"""Where lines are written: colours on a terminal, plain text elsewhere."""

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from cueline.console.telling import Line, Tone
from cueline.console.text import folded, visible

_STYLES: dict[Tone, str] = {
    "said": "bold",
    "agent": "",
    "output": "dim",
    "doing": "cyan",
    "good": "green",
    "bad": "red",
    "note": "yellow",
    "dim": "dim",
}
_QUOTED: frozenset[Tone] = frozenset({"said", "agent", "output", "doing"})
"""These hold what others wrote, or will be run: it stays as it is, to be copied."""
_ERASE = "\r\x1b[2K"


class Screen:
    """Writes lines above one that stays last: the question that waits for an answer."""

    def __init__(self, out: TextIO | None = None, *, quiet: bool = False) -> None:
        self.console = console_for(out)
        self._quiet = quiet
        self._last = ""

    @property
    def live(self) -> bool:
        """Whether a line can be written over."""
        return self.console.is_terminal

    def show(self, lines: Iterable[Line]) -> None:
        """Write *lines* above the last line; nothing in them moves the cursor."""
        told = list(lines)
        if not told or self._quiet:
            return
        self._erase()
        for line in told:
            for row in self._rows(line):
                self.console.print(Text(visible(row), _STYLES[line.tone]), soft_wrap=True)
        self._write_last()

    def _rows(self, line: Line) -> list[str]:
        """Fold what lists facts, where it is too wide."""
        folds = self.live and line.tone not in _QUOTED
        return folded(line.text, self.console.width) if folds else [line.text]

    def draw(self, what: RenderableType) -> None:
        """Write something larger, a box or a table, above the last line."""
        if self._quiet:
            return
        self._erase()
        self.console.print(what)
        self._write_last()

    def keep_last(self, text: str) -> None:
        """Have *text* stay the last line, with the cursor behind it; empty for none."""
        if not self.live or text == self._last:
            return
        self._erase()
        self._last = text
        self._write_last()

    def _erase(self) -> None:
        if self._last:
            # A dumb terminal would show what erases.
            blank = f"\r{' ' * (self.console.width - 1)}\r"
            self.console.file.write(blank if self.console.is_dumb_terminal else _ERASE)

    def _write_last(self) -> None:
        if self._last:
            # One row only: what wraps could not be erased.
            row = Text(self._last)
            row.truncate(self.console.width - 1)
            self.console.file.write(row.plain)
            self.console.file.flush()


class _Unheeded(Console):
    """A console whose reader may leave: what is shown goes on, and nobody sees it."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def console_for(out: TextIO | None) -> Console:
    """Return a console that shows text as it is; it respects `NO_COLOR`."""
    return _Unheeded(
        file=out or sys.stdout, markup=False, highlight=False, emoji=False, soft_wrap=False
    )
