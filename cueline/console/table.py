"""Tables, in plain text: columns that do not fit beside the others go beneath them."""

import shutil
from collections.abc import Iterator, Sequence

import typer

from cueline.console.text import one_line

_GAP = "  "
_BENEATH = "    "
_LEAST = 20
"""So much of the last column has to be seen; the rest of it may be cut."""


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* beneath *head*; nothing is cut where nobody's screen is filled."""
    table = [[one_line(cell, 10_000) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *table, strict=True)]
    columns = shutil.get_terminal_size((10_000, 24)).columns
    for row in [[name.upper() for name in head], *table]:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        for number, line in enumerate(_lines(widths, columns)):
            told = (_BENEATH * bool(number) + _GAP.join(cells[line])).rstrip()
            if told:
                typer.echo(told if len(told) <= columns else told[: columns - 1] + "…")


def _lines(widths: Sequence[int], columns: int) -> Iterator[slice]:
    """Tell which columns stand side by side."""
    first, left = 0, columns
    for number, width in enumerate(widths):
        needed = min(width, _LEAST) if number == len(widths) - 1 else width
        if needed > left and number > first:
            yield slice(first, number)
            first, left = number, columns - len(_BENEATH)
        left -= width + len(_GAP)
    yield slice(first, len(widths))
