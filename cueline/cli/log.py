"""`cueline log`: copy, create and upgrade a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.client.log import CopyStep, copy_log, migrate_log
from cueline.console.text import count, duration, json_of, visible
from cueline.runtime.loop import run

_HELP = """Create, upgrade or copy a log.

\b
Example:
  cueline log migrate --log postgresql://admin@db.internal/cueline --writer app
  cueline log copy .cueline/log.db postgresql://admin@db.internal/cueline
"""


group = typer.Typer(help=_HELP)


@group.command("copy", short_help="Copy a log, to a server or back.")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="URL or path of the log.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="URL or path of the copy.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Copy the log FROM to the log TO: between files and PostgreSQL, in any direction.

    The copy has the same positions, chains, keys, blobs and emptied payloads, and
    the same id. TO is made if it is missing; in PostgreSQL, its URL names the role
    that owns the tables, and `cueline log migrate` then grants rights to others.
    No process may use either log. If a copy was stopped, or FROM has grown since, run
    the command again: it continues. At the end the events are compared, and every
    chain of the copy is checked.

    \b
    Examples:
      cueline log copy .cueline/log.db postgresql://admin@db.internal/cueline
      cueline log copy postgresql://admin@db.internal/cueline backup.db
    """
    try:
        with _progress() as show:
            copied = run(copy_log(source, target, progress=show))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from here", err=True)
        raise typer.Exit(Exit.LEFT) from None
    if as_json:
        typer.echo(json_of(asdict(copied)))
    else:
        events, streams = count(copied.events, "event"), count(copied.streams, "stream")
        took = duration(copied.seconds)
        typer.echo(f"{visible(copied.target)}: {events} in {streams} copied and checked in {took}")
        for row in copied.bad:
            typer.echo(f"damaged in {visible(copied.source)} too: {row.place}: {row.reason}")
    if copied.bad:
        raise typer.Exit(Exit.FAILED)


@group.command("migrate", short_help="Create a log, or upgrade its format.")
def migrate(
    *,
    writer: Annotated[
        list[str] | None, typer.Option(metavar="ROLE", help="A role that may append; repeatable.")
    ] = None,
    reader: Annotated[
        list[str] | None, typer.Option(metavar="ROLE", help="A role that may read; repeatable.")
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Create the log, or upgrade it to the format of this cueline.

    Other commands create a file if necessary, but never a table of a database.
    In PostgreSQL, the role of the URL then owns the tables. The roles after
    --writer may append through functions, and can neither update nor delete; those
    after --reader may read. The roles have to exist. Run it again to add roles.

    \b
    Examples:
      cueline log migrate --log postgresql://admin@db.internal/cueline --writer app
      cueline log migrate --log "postgresql:///cueline?schema=test"
    """
    made = migrate_log(log, writers=writer or (), readers=reader or ())
    if as_json:
        typer.echo(json_of({"log": str(log), "made": made}))
    else:
        typer.echo(f"{visible(str(log))}: {'made' if made else 'it is up to date'}")


@contextmanager
def _progress() -> Iterator[Callable[[CopyStep], None]]:
    """Show the progress and the time on stderr, if stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as shown:
        task = shown.add_task("copying")
        yield lambda step: shown.update(
            task, description=step.what, completed=step.done, total=step.of
        )
