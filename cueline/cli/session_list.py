"""`cueline list`: the sessions of a log."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, labels_of, moment
from cueline.client.open_read_models import Page
from cueline.client.rows import STATUSES, SessionRow
from cueline.console.table import print_table
from cueline.console.text import arguments, date_time, duration, json_of, money, one_line, visible
from cueline.events.log_url import LogUrl

INTERRUPTED = "interrupted"
"""The shown status of a running session without a driver."""
_CLEAR = "\033[H\033[2J"
_FILTERS = ("status", "agent", "labels", "text", "min_cost", "since")


def list_(
    *,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="STATUS",
            help=f"Only these: {', '.join(STATUSES)}.",
            autocompletion=lambda: list(STATUSES),
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this agent.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Only those with this label; repeatable."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only those with it in their id or goal.")
    ] = None,
    min_cost: Annotated[
        float | None, typer.Option(min=0, metavar="USD", help="Only those that cost so much.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only those changed since: 2h, 30d, 2026-01-31."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    watch: Annotated[
        bool, typer.Option("--watch", help="List again whenever something happens, until Ctrl-C.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List the sessions of the log, the last changed first.

    `interrupted`: the process of a running session has ended; `cueline resume`
    continues it. `paused`: the session waits for a person.

    \b
    Examples:
      cueline list
      cueline list --status paused --agent clerk --json
      cueline list --label team=search --since 2h --watch
    """
    wanted = {
        "status": status,
        "agent": agent,
        "labels": labels_of(label),
        "text": text,
        "min_cost": min_cost,
        "since": moment("--since", since),
        "limit": limit,
    }
    open_log.run(_list(log, wanted, watch=watch, as_json=as_json))
    raise typer.Exit(Exit.DONE)


async def _list(log: LogUrl, wanted: dict[str, Any], *, watch: bool, as_json: bool) -> None:
    async with open_log.reader(log, must_exist=False) as reader:
        async for _ in reader.changes():
            found = await reader.sessions(**wanted)
            if watch and not as_json and sys.stdout.isatty():
                typer.echo(_CLEAR, nl=False)
            if as_json:
                typer.echo(json_of(open_log.rows(found), indent=None if watch else 2))
            elif found:
                _print(found)
            else:
                that_fit = " that fit" * any(wanted[name] for name in _FILTERS)
                log_ = visible(str(log))
                typer.echo(f"no sessions{that_fit} in {log_}; `cueline run` starts one")
            open_log.end_of(found)
            if not watch:
                return


def _start(row: SessionRow) -> str:
    """Return the start time of a waiting session, and the interval of its series."""
    if row.wait_kind != "time" or row.deadline_at is None or row.wait_cause is None:
        return ""
    from cueline.events.event_text import interval_text

    often = interval_text(float(str(row.wait_cause.get("every_seconds", 0))))
    return f", starts {date_time(row.deadline_at)}{often and f', {often}'}"


def _print(sessions: Page[SessionRow]) -> None:
    now = datetime.now(UTC)
    rows = []
    for each in sessions:
        status = f"{each.status}{', partial' * each.partial}"
        if each.driven is False:
            status = f"{each.status}, its {each.silence}" if each.silence else INTERRUPTED
        status += _start(each)
        age = duration((now - each.updated_at).total_seconds())
        cost = money(each.cost, estimated=each.estimated_cost > 0)
        goal = one_line(each.goal, 60) if each.goal else arguments(each.parameters, 60)
        rows.append((each.id, status, each.agent, age, str(each.turns), cost, goal))
    print_table(("session", "status", "agent", "changed", "turns", "cost", "goal"), rows)
    if any(row[1] == INTERRUPTED for row in rows):
        way = "`cueline resume SESSION` goes on with it, `cueline up` with all"
        typer.echo(f"{INTERRUPTED}: nobody drives it; {way}", err=True)
