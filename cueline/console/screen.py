"""Where lines are written: colours on a terminal, plain text elsewhere."""

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

from cueline.console.line import Line, Tone
from cueline.console.text import diff_style, is_diff, visible, wrapped

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
    """Writes lines, above what stays at the bottom where there is something."""

    def __init__(
        self, out: TextIO | None = None, *, quiet: bool = False, plain: bool = False
    ) -> None:
        self.console = console_for(out, plain=plain)
        self.above: Callable[[], AbstractContextManager[None]] = nullcontext
        """Entered while something is written."""
        self._quiet = quiet

    @property
    def live(self) -> bool:
        """Whether it is a terminal, and more than plain text is wanted there."""
        return self.console.is_terminal

    def show(self, lines: Iterable[Line]) -> None:
        """Write *lines*; nothing in them moves the cursor."""
        told = list(lines)
        if not told or self._quiet:
            return
        with self.above():
            for tone, block in groupby(told, key=lambda line: line.tone):
                for what in self._rendered(tone, [visible(line.text) for line in block]):
                    self.console.print(what, soft_wrap=isinstance(what, Text))

    def draw(self, what: RenderableType) -> None:
        """Write something larger, a box or a table."""
        if not self._quiet:
            with self.above():
                self.console.print(what)

    def reply(self, text: str) -> RenderableType:
        """Return what an agent says, rendered from Markdown if that hides nothing of it."""
        return _markdown(text) or Text(text)

    def rows_of(self, pieces: Iterable[RenderableType]) -> list[str]:
        """Return *pieces* as rows with escape codes, which can be written here."""
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
        """Wrap *row*; what follows its first fact, times and costs, is paler."""
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
    """A console whose reader may leave: what is shown goes on, and nobody sees it."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)


def console_for(out: TextIO | None, *, plain: bool = False) -> Console:
    """Return a console that shows text as it is; it respects `NO_COLOR`."""
    return _Unheeded(
        file=out or sys.stdout,
        force_terminal=False if plain else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
        theme=_THEME,
    )
