"""`cueline diff`: compare two sessions."""

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.client.compare import ComparedFile, ComparedLine, SessionDiff
from cueline.console.session_diff import change_text, compared_figures
from cueline.console.table import print_table
from cueline.console.text import count, diff_style, one_line, visible

_WIDTH = 100
_SIGNS = {"both": " ", "a": "-", "b": "+"}


def diff(
    session: SessionArgument,
    other: Annotated[str, typer.Argument(help="The session to compare it with.", metavar="OTHER")],
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Compare two sessions, such as a session and its fork.

    It shows what differs in what was said and called, in changed files, and in cost.
    Lines of the first session begin with `-`, those of the other with `+`.

    \b
    Examples:
      cueline diff 7f3a 9c21
      cueline diff 7f3a 9c21 --json
    """
    found = open_log.ask(log, lambda reader: reader.diff(session, other))
    open_log.print_answer(found, _print, as_json=as_json)


def _print(found: SessionDiff) -> None:
    a, b = found.a, found.b
    print_table(("", a.id, b.id), compared_figures(found))
    typer.echo()
    for line in _lines(found.transcript):
        typer.secho(line, fg=_colour(line))
    for each in found.files:
        typer.echo("\n".join(_file(each, a.id, b.id)))


def _lines(compared: tuple[ComparedLine, ...]) -> Iterator[str]:
    for side, group in groupby(compared, key=lambda each: each.side):
        lines = [each.line for each in group]
        if side == "both":
            yield f"  {count(len(lines), 'equal line')}"
            continue
        for line in lines:
            said = f"{line.kind} {line.name}".strip()
            yield one_line(f"{_SIGNS[side]} {said}: {line.text}", _WIDTH)
    if all(each.side == "both" for each in compared):
        yield "  nothing differs in what was said and called"


def _file(compared: ComparedFile, a: str, b: str) -> Iterator[str]:
    yield f"\n{visible(compared.path)}"
    for name, side in ((a, compared.a), (b, compared.b)):
        if side is None:
            yield f"  {name} did not change it"
        else:
            yield f"  {name} changed it:"
            yield from (f"  {visible(each)}" for each in change_text(side).splitlines())


def _colour(line: str) -> str | None:
    return diff_style(line) or None
