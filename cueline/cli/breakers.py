"""`cueline breakers`: list the circuit breakers of models and tools, and reset one."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.client.open_read_models import Page
from cueline.client.rows import BreakerRow
from cueline.config.environment import user_name
from cueline.console.table import print_table
from cueline.console.text import date_time, duration, json_of, visible

group = typer.Typer()


@group.callback(invoke_without_command=True)
def breakers(
    ctx: typer.Context, *, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False
) -> None:
    """List the circuit breakers of models, accounts and tools whose calls have failed.

    `open`: no call is sent before the shown time; then one call is tried.
    `half-open`: that call is in flight. `held`: the provider asked for a pause.

    \b
    Examples:
      cueline breakers
      cueline breakers --json
      cueline breakers reset tool.3f9a01c2.fetch_page
    """
    if ctx.invoked_subcommand is None:
        found = open_log.ask(log, lambda reader: reader.breakers())
        empty = f"no failures of models or tools that count in {log}"
        open_log.print_page(found, _print, empty, as_json=as_json)


@group.command("reset", short_help="Close a circuit breaker.")
def reset(
    name: Annotated[
        str, typer.Argument(help="The breaker, as `cueline breakers` names it.", metavar="BREAKER")
    ],
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Close a circuit breaker, so that its calls are sent again.

    The counted failures are dropped, and a pause that the provider asked for ends.
    Your name is recorded. Waiting sessions continue if a process drives them.
    To try only one session, resume it: it sends the probe at once.

    \b
    Example:
      cueline breakers reset tool.3f9a01c2.fetch_page
    """
    was_reset = open_log.wish(log, lambda client: client.reset_breaker(name))
    if as_json:
        typer.echo(json_of({"id": name, "reset": was_reset, "by": user_name()}))
    else:
        done = "reset; calls go out again" if was_reset else "it is closed, and keeps nothing back"
        typer.echo(f"{visible(name)}: {done}")


def _print(found: Page[BreakerRow]) -> None:
    now, rows = datetime.now(UTC), []
    for each in found:
        since = duration((now - each.since).total_seconds())
        at = date_time(each.until) if each.until else ""
        rows.append((each.id, each.state, since, at, each.kind, str(each.failures)))
    print_table(("breaker", "state", "for", "until", "last failure", "counted"), rows)
