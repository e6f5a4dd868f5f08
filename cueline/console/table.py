"""Tables, in plain text: the last column takes what is left of the width."""

import shutil
from collections.abc import Sequence

import typer

from cueline.console.text import one_line

_GAP = "  "


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* beneath *head*; nothing is cut where nobody's screen is filled."""
    table = [[one_line(cell, 10_000) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *table, strict=True)]
    columns = shutil.get_terminal_size((10_000, 24)).columns
    for row in [[name.upper() for name in head], *table]:
        line = _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(line.rstrip()[:columns])
