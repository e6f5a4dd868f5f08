"""`cueline sandboxes`: list the sandboxes of a log, and the sessions that wait for one."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.client.sandboxes import PoolStatus
from cueline.console.table import print_table
from cueline.console.text import duration, visible


def sandboxes(
    *,
    all_: Annotated[
        bool, typer.Option("--all", help="Also those that are deleted, or gone at the back-end.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List the sandboxes of sessions, and the sessions that wait for one, the next one first.

    `7f3a.1` is the first sandbox of the session 7f3a. A started one takes a slot.
    The log is read; no back-end is asked.

    \b
    Examples:
      cueline sandboxes
      cueline sandboxes --all --json
    """
    found = open_log.ask(log, lambda reader: reader.sandboxes(all=all_))
    if found.max_started is None and not as_json:
        gives = '`sandbox = "local"` in an agent\'s file gives each session one'
        typer.echo(f"no sandboxes in {visible(str(log))}; {gives}")
    else:
        open_log.print_answer(found, _print, as_json=as_json)


def _print(found: PoolStatus) -> None:
    typer.echo(f"slots: {found.used} of {found.max_started} used")
    if found.sandboxes:
        rows = [
            (each.id, each.backend, each.state, _age(each.since), visible(each.place))
            for each in found.sandboxes
        ]
        # Not `state`: in a table that has colours, and a stopped session is red.
        print_table(("sandbox", "backend", "is", "for", "place"), rows)
    else:
        typer.echo("no sandbox is left; `--all` lists those that were deleted")
    for each in found.sandboxes:
        if each.error is not None:
            typer.echo(visible(f"{each.id}: {each.error}"))
    if found.queue:
        waits = [(str(n), e.session, _age(e.since)) for n, e in enumerate(found.queue, 1)]
        print_table(("queue", "session", "for"), waits)


def _age(since: datetime) -> str:
    return duration((datetime.now(UTC) - since).total_seconds())
