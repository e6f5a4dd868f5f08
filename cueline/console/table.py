"""Prints tables in plain text."""

import csv
import io
import os
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal

import typer

from cueline.console.text import one_line

_UNBOUNDED = 10_000
_GAP = "  "
_SHORT = 11
"""The width up to which cells are not folded: that of the longest status."""
_STATUSES = {
    "completed": "green",
    "idle": "green",
    "closed": "green",
    "running": "cyan",
    "interrupted": "yellow",
    "waiting": "yellow",
    "paused": "yellow",
    "half_open": "yellow",
    "failed": "red",
    "stopped": "red",
    "open": "red",
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of what a spreadsheet runs."""
_TIMES = {"changed", "recorded", "time left", "for", "until", "beat"}


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* below *head*; a cell that is too wide is folded, never cut."""
    cells = [[one_line(cell, _UNBOUNDED) for cell in row] for row in rows]
    if sys.stdout.isatty() or not os.environ.keys().isdisjoint({"COLUMNS", "FORCE_COLOR"}):
        _print_folded(head, cells)
        return
    from rich.cells import cell_len, set_cell_size

    lines = [[name.upper() for name in head], *cells]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        row = _GAP.join(map(set_cell_size, line, widths))
        typer.echo(row.rstrip())


def _print_folded(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print *rows* as wide as the screen is."""
    from rich.table import Table
    from rich.text import Text

    from cueline.console.screen import console_for

    console = console_for(None)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(head):
        # The first names the row: it is copied, and has to be in one piece.
        whole = number == 0 or all(len(row[number]) <= _SHORT for row in rows)
        table.add_column(Text(name.upper()), overflow="fold", no_wrap=whole)
    for row in rows:
        table.add_row(
            *(Text(cell, _style(name, cell)) for name, cell in zip(head, row, strict=True))
        )
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def print_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print *rows* as CSV, below the names of the columns if *head* has them.

    A text that a spreadsheet would run as a formula begins with `'`.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if head:
        writer.writerow(head)
    writer.writerows(map(_without_formula, row) for row in rows)
    typer.echo(file.getvalue(), nl=False)


def _without_formula(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _style(column: str, cell: str) -> str:
    """Return the style of a cell: a status has its colour, a time is paler."""
    if column in {"status", "state"}:
        return _STATUSES.get(cell.partition(",")[0], "")
    return "dim" if column in _TIMES else ""


_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float | Decimal, width: int) -> str:
    """Return a bar of *share* of *width*; a share above 0 is always visible."""
    eighths = round(float(share) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
