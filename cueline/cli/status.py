"""`cueline status`: what drives the sessions of a log, and where."""

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from cueline.cli import opened
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.up import document_of, place_of
from cueline.console.text import count, json_of
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.events.store import Presence

_HELP = """Show what drives the sessions of the log, and where.

\b
Examples:
  cueline status
  cueline status --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status", help=_HELP, short_help="Show what runs where.")(status)


def status(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Show what runs where."""
    opened.run(_look(log, as_json=as_json))


def _tell(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_of(document, indent=2))
        return
    kept = document["up"]
    typer.echo(f"up: {kept['shown']}" if kept else "no `cueline up` is running for this log")
    if document["processes"]:
        _print_processes(document["processes"])
    typer.echo(count(document["driven"], "running session"))
    if left := document["undriven"]:
        were, them = ("was", "it") if left == 1 else ("were", "them")
        who = "`cueline resume`" if kept else "`cueline up` or `cueline resume`"
        undriven = f"{left} more {were} left running, and nobody drives {them}"
        typer.echo(f"{undriven}: {who} goes on with {them}")


def _print_processes(members: list[dict[str, Any]]) -> None:
    from cueline.console.table import print_table

    rows = []
    for each in members:
        drives = each["role"] in ("host", "inline")
        where = (str(each["pid"]), each["machine"][:12], f"{each['beat_seconds']:.0f} s ago")
        rows.append((each["incarnation"], *where, str(each["sessions"]) if drives else ""))
    print_table(("process", "pid", "machine", "beat", "running"), rows)


async def _look(log: LogUrl, *, as_json: bool) -> None:
    from cueline.actors.owner import owners_of
    from cueline.actors.presence import living
    from cueline.clock import SystemClock
    from cueline.projections.session import running
    from cueline.up_record import find_up

    now = SystemClock().now()
    async with opened.board_of(log) as board, opened.looking(log) as store:
        present = await living(board, now)
        async with opened.views_of(log, store) as views:
            streams = running(views.db)
            owners = await owners_of(store, board, streams, now)
            drives = Counter(owner.incarnation for owner in owners.values())
            record = find_up(log)
            up = None if record is None else document_of(record) | {"shown": place_of(record)}
            document = {
                "up": up,
                "processes": [_process(each, drives[each.incarnation], now) for each in present],
                "driven": len(owners),
                "undriven": len(streams) - len(owners),
            }
            _tell(document, as_json=as_json)


def _process(each: "Presence", sessions: int, now: datetime) -> dict[str, Any]:
    from cueline.actors.presence import silent_seconds

    return {
        "role": each.role,
        "incarnation": each.incarnation,
        "machine": each.machine,
        "pid": each.pid,
        "beat_seconds": silent_seconds(each, now),
        "sessions": sessions,
    }
