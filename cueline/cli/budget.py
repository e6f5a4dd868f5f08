"""`cueline budget`: show and raise the limits of a session."""

from typing import Any

import typer

from cueline.cli import open_log
from cueline.cli.option import (
    DEFAULT_LOG,
    JsonOption,
    LogOption,
    SessionArgument,
    limits_of,
    takes,
)
from cueline.cli.up_lookup import print_receipt
from cueline.client.limits import Budget
from cueline.config.config_source import Flags, from_flags
from cueline.console.summary import NAMES, amount
from cueline.console.table import print_table
from cueline.console.text import duration

_GROUP = """Show the limits of a session, or raise them.

A session at a limit is paused, not failed: raise the limit, and it continues.
"""


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("show", short_help="Show each limit and the used amount.")
def show(
    session: SessionArgument, *, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False
) -> None:
    """Show each limit of a session: the used amount, and the source of the limit.

    Tokens and cost include all descendants. Limits of ancestors apply to the session,
    too, and are shown with the ancestor's name.

    \b
    Example:
      cueline budget show 7f3a
    """
    found = open_log.ask(log, lambda reader: reader.budget(session))
    open_log.print_answer(found, _print, as_json=as_json)
    raise typer.Exit(open_log.exit_of_damage(found.damage))


@group.command("raise", short_help="Raise limits of a session.")
@takes(limits_of)
def raise_(
    limits: Flags,
    session: SessionArgument,
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Raise limits of a session, which continues if it was waiting for this.

    A raise is a message, so it counts even if no process runs. A limit can be raised,
    not lowered, and you cannot add a limit that the session was started without.

    \b
    Examples:
      cueline budget raise 7f3a --max-cost 10
      cueline budget raise 7f3a --time-budget 8h --max-turns 100
    """
    wanted = from_flags(limits)
    if not wanted:
        raise typer.BadParameter("name a limit: --max-cost, --max-tokens, --max-turns …")
    more: Any = {key.partition(".")[2]: each.value for key, each in wanted.items()}
    receipt = open_log.wish(log, lambda client: client.raise_limits(session, **more))
    print_receipt(log, receipt, f"{receipt.session}: asked for more", as_json=as_json)


def _print(standing: Budget) -> None:
    typer.echo(f"session {standing.id}: {standing.status}")
    table = [
        (
            NAMES[row.limit] + (f" of {row.whose}" if row.whose else ""),
            amount(row.limit, row.used),
            amount(row.limit, row.reserved) if row.reserved else "",
            amount(row.limit, row.of),
            f"{row.used / row.of:.0%}",
            row.source,
        )
        for row in standing.rows
    ]
    print_table(("limit", "used", "reserved", "of", "share", "set by"), table)
    clocks = (
        ("active", standing.active_seconds),
        ("waiting", standing.waiting_seconds),
        ("wall", standing.wall_seconds),
    )
    typer.echo("clocks: " + ", ".join(f"{name} {duration(seconds)}" for name, seconds in clocks))
