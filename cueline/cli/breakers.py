"""`cueline breakers`: which models and tools are left alone, and until when."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import date_time, duration, json_of, visible

if TYPE_CHECKING:
    from cueline.projections.breaker import Breaker

_HELP = """List the models, accounts and tools whose calls failed, and which are left alone.

`open`: nothing goes out before the time that is shown; then one call is tried.
`half-open`: that call is under way. `held`: the provider asked to be left alone.

\b
Examples:
  cueline breakers
  cueline breakers --json
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("breakers", help=_HELP, short_help="List what is left alone, and until when.")(
        breakers
    )


def breakers(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List breakers."""
    opened.run(_list(log, as_json=as_json))
    raise typer.Exit(Exit.DONE)


async def _list(log: Path, *, as_json: bool) -> None:
    from cueline.projections.breaker import list_breakers

    async with opened.looking(log) as store, opened.views_of(log, store) as views:
        found, now = list_breakers(views.db), datetime.now(UTC)
        if as_json:
            documents = [_document(each, now) for each in found]
            typer.echo(json_of(documents, indent=2))
        elif found:
            _print(found, now)
        else:
            typer.echo(f"no failures of models or tools that count in {visible(str(log))}")


def _document(each: "Breaker", now: datetime) -> dict[str, Any]:
    until = each.until(now)
    return {
        **{name: told for name, told in asdict(each).items() if not name.endswith("_us")},
        "state": each.shown_state(now),
        "since": each.since.isoformat(),
        "until": until.isoformat() if until else None,
    }


def _print(found: list["Breaker"], now: datetime) -> None:
    from cueline.console.table import print_table

    rows = []
    for each in found:
        until = each.until(now)
        since = duration((now - each.since).total_seconds())
        at = date_time(until) if until else ""
        rows.append((each.id, each.shown_state(now), since, at, each.kind, str(each.failures)))
    print_table(("breaker", "state", "for", "until", "last failure", "counted"), rows)
