"""`cueline log`: create, copy, back up and restore a log; check it before a deploy; its schema."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, AgainstOption, JsonOption, LogOption, complete_type
from cueline.client.log import (
    Copied,
    CopyStep,
    backup_log,
    copy_log,
    migrate_log,
    restore_log,
    scrub_log,
)
from cueline.client.log_check import SAMPLE, LogCheck, check_log
from cueline.client.log_fsck import Fsck
from cueline.client.log_fsck import fsck as fsck_log
from cueline.client.rows import check_type
from cueline.clock import SystemClock
from cueline.console.progress import progress
from cueline.console.text import count, duration, json_of, visible
from cueline.events.json_schema import schema_of, schema_of_all
from cueline.events.log_url import LogUrl
from cueline.runtime.loop import run
from cueline.runtime.open_log import open_log as open_log_file

_HELP = """Create, upgrade, copy, back up, restore or check a log.

\b
Example:
  cueline log migrate --log postgresql://admin@db.internal/cueline --writer app
  cueline log copy .cueline/log.db postgresql://admin@db.internal/cueline
  cueline log backup /mnt/backup/2026-11-29.db
  cueline log check --against postgresql://report@db.internal/cueline
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
        with _progress("copying") as show:
            copied = run(copy_log(source, target, progress=show))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on from here", err=True)
        raise typer.Exit(Exit.LEFT) from None
    _print_copied(copied, as_json=as_json)


@group.command("backup", short_help="Copy a log to a file while it is used.")
def backup(
    target: Annotated[str, typer.Argument(metavar="TO", help="The new file.")],
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Copy a log to the new file TO, while sessions go on.

    TO is a log: the state of one moment, with all that was recorded before the command,
    and without content that was removed. Every chain in it is checked, then it gets its
    name. It is for files and PostgreSQL. The log's file grows meanwhile, because readers
    hold up the tidying of its `-wal`.

    \b
    Examples:
      cueline log backup /mnt/backup/2026-11-29.db
      cueline list --log /mnt/backup/2026-11-29.db
    """
    with _progress("copying") as show:
        copied = run(backup_log(log, target, progress=show))
    _print_copied(copied, as_json=as_json)


@group.command("restore", short_help="Put a backup in the place of a log.")
def restore(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A backup.")],
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Put a copy of the backup FROM in the place of the log.

    No process may use the log. The former log is moved aside, with its name and the time.
    What was recorded after the backup is not known any more: a call that ran since may
    run again when its session continues. `cueline log fsck` shows what to look at.

    \b
    Example:
      cueline log restore /mnt/backup/2026-11-29.db --log .cueline/log.db
    """
    with _progress("copying") as show:
        copied, former = run(
            restore_log(source, log, now=SystemClock().now().astimezone(), progress=show)
        )
    if former is not None and not as_json:
        other = "" if former.same else "; it was another log, not the one of the backup"
        typer.echo(visible(f"the former log is now {former.path}{other}"))
    path, same = (None, None) if former is None else (str(former.path), former.same)
    _print_copied(copied, as_json=as_json, former=path, same_log=same)


def _print_copied(copied: Copied, *, as_json: bool, **more: object) -> None:
    if as_json:
        typer.echo(json_of({**asdict(copied), **more}))
    else:
        events, streams = count(copied.events, "event"), count(copied.streams, "stream")
        took = duration(copied.seconds)
        typer.echo(f"{visible(copied.target)}: {events} in {streams} copied and checked in {took}")
        for row in copied.bad:
            typer.echo(f"damaged in {visible(copied.source)} too: {row.place}: {row.reason}")
    if copied.bad:
        raise typer.Exit(Exit.FAILED)


@group.command("scrub", short_help="Overwrite what was removed.")
def scrub(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Write the files of a log anew, without remains of removed content in free pages.

    `cueline erase`, `archive` and `cleanup` do it themselves, unless a process uses the
    log. It is for files: a database server has its own `VACUUM`.

    \b
    Example:
      cueline log scrub
    """
    run(scrub_log(log))
    done = f"{log}: nothing removed is left in its files"
    typer.echo(json_of({"log": str(log)}) if as_json else visible(done))


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


@group.command("check", short_help="Check that this cueline can read a log.")
def check(
    *,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help=f"Check N sessions; without it {SAMPLE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Check all sessions.")] = False,
    log: AgainstOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Check before a deploy that this cueline can go on with the sessions of a log.

    Sessions from the whole log, with the newest, are decoded and folded. The states
    are compared with the snapshots beside the log, and the prompts with their recorded
    digests. The log is not changed, and may be in use. Each difference is printed, and
    the exit code is then 1.

    \b
    Examples:
      cueline log check --against .cueline/log.db
      cueline log check --against postgresql://report@db.internal/cueline --all
    """
    if every and sample is not None:
        raise typer.BadParameter("give --sample or --all, not both")
    most = None if every else sample or SAMPLE
    with _progress("checking") as show:
        checked = run(
            check_log(log, sample=most, progress=lambda *at: show(CopyStep("checking", *at)))
        )
    open_log.print_answer(checked, _print_check, as_json=as_json)
    raise typer.Exit(Exit.FAILED if checked.differences else Exit.DONE)


def _print_check(checked: LogCheck) -> None:
    for each in checked.differences:
        typer.echo(visible(f"{each.session}@{each.version}: {each.reason}"))
    read = f"{checked.sessions:,} of {count(checked.of, 'session')}"
    found = count(len(checked.differences), "difference")
    typer.echo(f"{read}, {count(checked.events, 'event')}: {found}")
    states = f"compared with a snapshot: {checked.compared:,}"
    typer.echo(f"{states}; folded by other rules: {checked.other_rules:,}")


@group.command("fsck", short_help="Find and close what nobody closes.")
def fsck(
    *,
    repair: Annotated[
        bool, typer.Option("--repair", help="Close what an append can close; nothing is changed.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Find what is damaged in a log, or left open with nobody who will close it.

    These are: damaged events; read models of another past of the log; sessions with work
    that no process does; approvals after their deadline, or of ended sessions;
    reservations and sandboxes of ended sessions. Each is explained, with what to do.
    --repair appends the facts that close it, by the rules of a running cueline: every
    recorded event stays. The log may be in use. The exit code is 1 while anything is left.

    \b
    Examples:
      cueline log fsck
      cueline log fsck --repair --log postgresql://app@db.internal/cueline
    """
    with progress("checking", plain=as_json):
        checked = run(_fsck(log, repair=repair))
    open_log.print_answer(checked, _print_fsck, as_json=as_json)
    raise typer.Exit(Exit.FAILED if checked.left else Exit.DONE)


async def _fsck(log: LogUrl, *, repair: bool) -> Fsck:
    async with open_log_file(log, must_exist=True, read_only=not repair) as opened:
        return await fsck_log(opened, repair=repair)


def _print_fsck(checked: Fsck) -> None:
    for each in checked.findings:
        done = "repaired" if each.repaired else f"next: {each.advice}"
        typer.echo(visible(f"{each.kind.replace('_', ' ')} {each.name}: {each.problem}\n  {done}"))
    read = f"{count(checked.events, 'event')} in {count(checked.streams, 'stream')}"
    found = count(len(checked.findings), "finding")
    typer.echo(f"{read}: {found}, {checked.left} left")


@group.command("schema", short_help="Print the JSON Schema of the events.")
def schema(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE",
            help="Only of this event.",
            show_default=False,
            autocompletion=complete_type,
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Print the JSON Schema of all events, or of one.

    The document has each event, and the parts of events, in its `$defs`. With
    --json it is on one line.

    \b
    Examples:
      cueline log schema > events.schema.json
      cueline log schema ToolReturned
    """
    check_type(kind)
    found = schema_of_all() if kind is None else schema_of(kind)
    typer.echo(json_of(found, indent=None if as_json else 2))


@contextmanager
def _progress(what: str) -> Iterator[Callable[[CopyStep], None]]:
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
        task = shown.add_task(what)
        yield lambda step: shown.update(
            task, description=step.what, completed=step.done, total=step.of
        )
