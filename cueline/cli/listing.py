"""`cueline list`: the sessions of a log."""

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, tell_of_more
from cueline.console.text import duration, json_of, money, one_line, visible
from cueline.suggestion import known_instead

if TYPE_CHECKING:
    from cueline.projections.session import Session

_HELP = """List the sessions of the log, the last changed first.

`running` needs somebody who drives it; where nobody does, the list says so,
and `cueline resume` goes on with it. `paused` waits for a person.

\b
Examples:
  cueline list
  cueline list --status paused --agent clerk --json
"""
_STATUSES = (
    "created",
    "running",
    "idle",
    "waiting",
    "paused",
    "stopping",
    "completed",
    "failed",
    "stopped",
)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("list", help=_HELP, short_help="List the sessions of the log.")(list_)


def list_(
    *,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help=f"Only these: {', '.join(_STATUSES)}.",
            autocompletion=lambda: _STATUSES,
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this agent.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List sessions."""
    if status is not None and status not in _STATUSES:
        raise typer.BadParameter(
            f"{status!r} is no status{known_instead(status, _STATUSES, 'they are')}"
        )
    opened.run(_list(log, status, agent, limit, as_json=as_json))
    raise typer.Exit(Exit.DONE)


async def _list(
    log: Path, status: str | None, agent: str | None, limit: int, *, as_json: bool
) -> None:
    """Tell the sessions, and which of them nobody drives although somebody should."""
    from cueline.actors.owner import owners_of, silence_of
    from cueline.clock import SystemClock
    from cueline.projections.session import DRIVEN, list_sessions

    now = SystemClock().now()
    async with (
        opened.looking(log) as store,
        opened.views_of(log, store) as views,
        opened.board_of(log) as board,
    ):
        fitting = list_sessions(views.db, status=status, agent=agent, limit=limit + 1)
        sessions = fitting[:limit]
        driven = [each.stream for each in sessions if each.status in DRIVEN]
        left = set(driven).difference(await owners_of(store, board, driven, now))
        abandoned = {each: await silence_of(store, board, each, now) for each in left}
        if as_json:
            documents = [_document(each, abandoned) for each in sessions]
            typer.echo(json_of(documents, indent=2))
        elif sessions:
            _print(sessions, abandoned)
        else:
            that_fit = " that fit" if status or agent else ""
            typer.echo(f"no sessions{that_fit} in {visible(str(log))}; `cueline run` starts one")
        if len(fitting) > limit:
            tell_of_more()


def _document(session: "Session", abandoned: Collection[str]) -> dict[str, Any]:
    from cueline.events.store import from_us
    from cueline.projections.session import DRIVEN

    told = asdict(session)
    times = {
        name.removesuffix("_us") + "_at": from_us(value).isoformat() if value else None
        for name, value in told.items()
        if name.endswith("_us") and name != "due_us"
    }
    kept = {n: v for n, v in told.items() if not n.endswith(("_us", "_json"))}
    driven = session.stream not in abandoned if session.status in DRIVEN else None
    return {
        **kept,
        **times,
        "shown_status": session.shown_status,
        "labels": session.labels,
        "driven": driven,
    }


def _print(sessions: list["Session"], abandoned: Mapping[str, str | None]) -> None:
    from cueline.console.table import print_table

    now = datetime.now(UTC)
    rows = []
    for each in sessions:
        status = f"{each.shown_status}{', partial' * each.partial}"
        if each.stream in abandoned:
            silence = abandoned[each.stream]
            who = f"its {silence}" if silence else "nobody drives it"
            status = f"{each.shown_status}, {who}"
        age = duration((now - each.updated_at).total_seconds())
        cost = money(Decimal(each.cost), estimated=Decimal(each.estimated_cost) > 0)
        goal = one_line(each.goal or "", 60)
        rows.append((each.id, status, each.agent, age, str(each.turns), cost, goal))
    print_table(("session", "status", "agent", "changed", "turns", "cost", "goal"), rows)
