"""`cueline log`: a log itself, and not what is in it."""

from typing import Annotated

import typer

from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import json_of, visible

_HELP = """Make or upgrade a log.

\b
Example:
  cueline log migrate --log postgresql://admin@db.internal/cueline --writer app
"""
_MIGRATE = """Make the log, or bring it to the format of this cueline.

Other commands make a file by themselves, but never a table of a database.
In PostgreSQL, the role of the URL then owns the tables. The roles after
--writer may append through functions, and can neither update nor delete; those
after --reader may read. The roles have to exist. Run it again to add roles.

\b
Examples:
  cueline log migrate --log postgresql://admin@db.internal/cueline --writer app
  cueline log migrate --log "postgresql:///cueline?schema=test"
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(help=_HELP, short_help="Make or upgrade a log.")
    short = "Make a log, or upgrade its format."
    group.command("migrate", help=_MIGRATE, short_help=short)(migrate)
    app.add_typer(group, name="log")


def migrate(
    *,
    writer: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A role that may append; repeatable."),
    ] = None,
    reader: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A role that may read; repeatable."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Make or upgrade a log."""
    from cueline.client.log import migrate_log

    made = migrate_log(log, writers=writer or (), readers=reader or ())
    if as_json:
        typer.echo(json_of({"log": str(log), "made": made}))
    else:
        typer.echo(f"{visible(str(log))}: {'made' if made else 'it is up to date'}")
