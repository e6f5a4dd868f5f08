"""Writes lines: with colours on a terminal, as plain text elsewhere."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from io import StringIO
from itertools import groupby
from typing import Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

from cueline.console.text import Line, Tone, diff_style, is_diff, visible, wrapped

THINKING = "dim italic"
_STYLES: dict[Tone, str] = {
    "said": "bold",
    "agent": "",
    "thinking": THINKING,
    "output": "dim",
    "doing": "cyan",
    "good": "green",
    "bad": "red",
    "note": "yellow",
    "dim": "dim",
}
_FACTS = " · "
_THEME = Theme({"markdown.code": "cyan", "markdown.item.number": "", "markdown.item.bullet": ""})


class Screen:
    """Writes lines above the bottom of the screen."""

    def __init__(
        self, out: TextIO | None = None, *, quiet: bool = False, plain: bool = False
    ) -> None:
        self.console = console_for(out, plain=plain)
        self.above: Callable[[], AbstractContextManager[None]] = nullcontext
        """The context in which lines are written."""
        self._quiet = quiet

    @property
    def live(self) -> bool:
        """Whether the output is a terminal with more than plain text."""
        return self.console.is_terminal

    def show(self, lines: Iterable[Line]) -> None:
        """Write *lines*, without control characters."""
        told = list(lines)
        if not told or self._quiet:
            return
        with self.above():
            for tone, block in groupby(told, key=lambda line: line.tone):
                for what in self._rendered(tone, [visible(line.text) for line in block]):
                    self.console.print(what, soft_wrap=isinstance(what, Text))

    def draw(self, what: RenderableType) -> None:
        """Write a box or a table."""
        if not self._quiet:
            with self.above():
                self.console.print(what)

    def reply(self, text: str) -> RenderableType:
        """Return the text of an agent, rendered from Markdown if this hides no part."""
        return _markdown(text) or Text(text)

    def rows_of(self, pieces: Iterable[RenderableType]) -> list[str]:
        """Return *pieces* as rows with escape codes for this screen."""
        console = Console(
            file=StringIO(),
            force_terminal=True,
            color_system=cast("Any", self.console.color_system),  # its own word for it
            no_color=self.console.no_color,
            width=self.console.width,
            highlight=False,
            theme=_THEME,
        )
        with console.capture() as captured:
            for part in pieces:
                console.print(part)
        return captured.get().rstrip("\n").split("\n")

    def _rendered(self, tone: Tone, rows: list[str]) -> Iterator[RenderableType]:
        if not self.live:
            yield from map(Text, rows)
        elif tone == "agent" and (reply := _markdown("\n".join(rows))) is not None:
            yield reply
        else:
            diff = tone == "output" and is_diff([row.strip() for row in rows])
            for row in rows:
                style = diff_style(row[4:]) if diff else _STYLES[tone]
                yield from self._wrapped(row, style)

    def _wrapped(self, row: str, style: str) -> Iterator[Text]:
        """Wrap *row*; times and costs after its first part are paler."""
        first = row.find(_FACTS)
        for number, part in enumerate(wrapped(row, self.console.width)):
            text = Text(part, style)
            if first >= 0 and style != "cyan":
                text.stylize("dim", 0 if number else min(first, len(part)))
            yield text


def _markdown(text: str) -> RenderableType | None:
    from cueline.console.markdown import markdown  # noqa: PLC0415 - slow to import, and pipes get none

    return markdown(text)


class _Unheeded(Console):
    """A console that drops all output after its reader has closed the pipe."""

    def on_broken_pipe(self) -> None:
        """Drop all later output."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def console_for(out: TextIO | None, *, plain: bool = False) -> Console:
    """Return a console that shows text unchanged; it respects `NO_COLOR`."""
    return _Unheeded(
        file=out or sys.stdout,
        force_terminal=False if plain else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
        theme=_THEME,
    )
