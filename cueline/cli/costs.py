"""`cueline costs`: what was spent."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.naming import complete_session
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import count, json_of, money, visible

if TYPE_CHECKING:
    from cueline.projections.cost import By, Spent

_HELP = """Show what was spent, by session, agent, model, day or tree of sessions.

A cost is what the log says of each answer, with the price list of that time.
What nobody knows, because the answer was lost or told no use, counts as the
most that the call may have cost, and is marked `~`.

\b
Examples:
  cueline costs
  cueline costs --by model --since 2026-01-01
  cueline costs --by day --session 7f3a --json
"""
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_BAR = 24


class Way(StrEnum):
    """What costs are summed up by."""

    SESSION = "session"
    AGENT = "agent"
    MODEL = "model"
    DAY = "day"
    TREE = "tree"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("costs", help=_HELP, short_help="Show what was spent.")(costs)


def costs(
    *,
    by: Annotated[Way, typer.Option(help="What to sum up by.")] = Way.SESSION,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="SESSION", help="Only of this session.", autocompletion=complete_session
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="From this day on, in UTC: 2026-01-31.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Up to this day.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many rows.")] = 50,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Show costs."""
    for name, day in (("--since", since), ("--until", until)):
        if day is not None and not _is_day(day):
            raise typer.BadParameter(f"{day!r} is no day like 2026-01-31", param_hint=name)
    opened.run(_tell(log, by.value, (session, since, until), limit, as_json=as_json))
    raise typer.Exit(Exit.DONE)


def _is_day(text: str) -> bool:
    """Whether the calendar has such a day, written as the read models write it."""
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


async def _tell(
    log: Path,
    by: "By",
    asked: tuple[str | None, str | None, str | None],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Tell what was spent by each, and by all; *asked* is a session, and the first and last day."""
    from cueline.cli.naming import find_session
    from cueline.projections.cost import spent, total

    session, since, until = asked
    async with opened.looking(log) as store, opened.views_of(log, store) as views:
        stream = None if session is None else await find_session(store, log, session)
        rows = spent(views.db, by, stream=stream, since=since, until=until)
        # A session may have used several models, on several days.
        several = by in ("model", "day")
        once = spent(views.db, stream=stream, since=since, until=until) if several else rows
        whole = total(once)
        if as_json:
            document = {
                "by": by,
                "rows": [_document(row) for row in rows[:limit]],
                "total": _document(whole),
            }
            typer.echo(json_of(document, indent=2))
        elif rows:
            _print(by, rows, whole, limit)
        else:
            fitting = "that fits " if any(asked) else ""
            typer.echo(f"nothing {fitting}was spent in {visible(str(log))}")


def _document(spent: "Spent") -> dict[str, Any]:
    told = {n: str(v) if isinstance(v, Decimal) else v for n, v in asdict(spent).items()}
    return {**told, "name": _name(spent.name)}


def _name(name: str) -> str:
    from cueline.events.stream import shown

    return shown(name) if name.startswith("session-") else name


def _print(by: "By", rows: Sequence["Spent"], whole: "Spent", limit: int) -> None:
    from cueline.console.bar import bar
    from cueline.console.table import print_table

    dearest = max((row.usd for row in rows), default=Decimal(0))
    table = [
        (*_cells(row), bar(row.usd / dearest, _BAR) if dearest else "") for row in rows[:limit]
    ]
    print_table(
        (by, "sessions", "answers", "sent", "cached", "output", "cost", ""),
        [*table, (*_cells(whole), "")],
    )
    if len(rows) > limit:
        left = sum((row.usd for row in rows[limit:]), Decimal(0))
        typer.echo(f"{count(len(rows) - limit, 'more row')} of {money(left)}; --limit shows them")
    for usd, why in (
        (
            whole.estimated_usd,
            "estimated, at the most that calls of unknown use may cost (~)",
        ),
        (whole.assumed_usd, "at assumed prices (?)"),
    ):
        if usd:
            typer.echo(f"{money(usd)} of it is {why}")
    if whole.unpriced:
        typer.echo(f"{count(whole.unpriced, 'model call')} of an unknown price cost more than that")


def _cells(row: "Spent") -> tuple[str, ...]:
    mark = "?" * (row.assumed_usd > 0)
    return (
        _name(row.name),
        *(f"{n:,}" for n in (row.sessions, row.calls)),
        *(f"{n:,}" for n in (row.sent_tokens, row.cached_tokens, row.output_tokens)),
        f"{mark}{money(row.usd, estimated=row.estimated_usd > 0)}",
    )
