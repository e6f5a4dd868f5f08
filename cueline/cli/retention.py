"""`cueline erase`, `archive` and `cleanup`: remove the content of ended sessions."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, complete_session, moment
from cueline.cli.terminal import is_attended
from cueline.client.log import scrub_log
from cueline.client.retention import EmptyReceipt, clean_up
from cueline.client.retention import erase as erase_sessions
from cueline.console.progress import progress
from cueline.console.table import print_table
from cueline.console.text import count, visible
from cueline.errors import LogUnavailableError, RejectedError
from cueline.events.log_url import LogUrl

OlderOption = Annotated[
    str,
    typer.Option("--older-than", metavar="TIME", help="Not changed since then: 30d, 2026-01-31."),
]
PausedOption = Annotated[
    bool, typer.Option("--paused", help="Also sessions that wait for a person.")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only list them.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def erase(
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION...",
            help="Ids of ended sessions.",
            autocompletion=complete_session,
        ),
    ] = None,
    *,
    user: Annotated[
        str | None, typer.Option(metavar="NAME", help="All sessions that this person started.")
    ] = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; it is recorded, without personal data.")
    ] = "",
    yes: YesOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Remove what ended sessions, and all below them, said and did.

    The content of their events, long values, snapshots, rows of tables and archives
    that this machine can reach are overwritten. It cannot be undone. What stays is
    that each event was there, its type and its actor, and what the session cost: so
    `cueline audit verify` still holds. Copies and backups are not reached.

    \b
    Examples:
      cueline erase 7f3a --reason "the customer asked for it"
      cueline erase --user ada --yes
    """
    if bool(sessions) == bool(user):
        raise typer.BadParameter("name sessions, or a person by --user, not both")
    whom = ", ".join(sessions or ()) or f"all sessions of {user}"
    _confirm(f"Remove the content of {whom}, for good?", yes=yes, as_json=as_json)
    with progress("removing", plain=as_json):
        done = open_log.wish(
            log, lambda client: erase_sessions(client, sessions or (), user=user, reason=reason)
        )
    open_log.print_answer(done, _print_receipt, as_json=as_json)
    _scrub(log, done)


def archive(
    *,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the files go.")],
    older_than: OlderOption = "30d",
    paused: PausedOption = False,
    dry_run: DryRunOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Move the content of old sessions from the log to files, one for each session.

    A file is compressed JSON Lines: the events, as `cueline export --format events` prints
    them, and the long values that they name. It is read back before anything is
    removed from the log. Sessions that may go on stay, with all of their tree.

    \b
    Examples:
      cueline archive --to /mnt/archive --older-than 90d --dry-run
      cueline archive --to /mnt/archive --older-than 90d
    """
    _clean_up(log, _moment(older_than), to, paused=paused, dry_run=dry_run, as_json=as_json)


def cleanup(
    *,
    older_than: OlderOption = "30d",
    paused: PausedOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Remove the content of old sessions; `cueline archive` keeps it in files.

    Sessions that may go on stay, with all of their tree. What stays is that each event
    was there, and what the session cost. It cannot be undone.

    \b
    Examples:
      cueline cleanup --older-than 30d --dry-run
      cueline cleanup --older-than 30d --yes
    """
    before = _moment(older_than)
    question = f"Remove the sessions older than {older_than}, for good?"
    _confirm(question, yes=yes or dry_run, as_json=as_json)
    _clean_up(log, before, None, paused=paused, dry_run=dry_run, as_json=as_json)


def _moment(older_than: str) -> datetime:
    before = moment("--older-than", older_than)
    assert before is not None, "the option has a default"
    return before


def _confirm(question: str, *, yes: bool, as_json: bool) -> None:
    """Ask the person at the terminal, unless *yes*.

    Raises:
        BadParameter: nobody is there to ask.
        Abort: the answer is no.
    """
    if yes:
        return
    if as_json or not is_attended():
        raise typer.BadParameter("it cannot be undone, and nobody is asked here: say --yes")
    typer.confirm(visible(question), abort=True)


def _clean_up(
    log: LogUrl, before: datetime, to: Path | None, *, paused: bool, dry_run: bool, as_json: bool
) -> None:
    with progress("removing", plain=as_json):
        done = open_log.wish(
            log,
            lambda client: clean_up(client, before, archive=to, paused=paused, dry_run=dry_run),
        )
    open_log.print_answer(done, _print_dry_run if dry_run else _print_receipt, as_json=as_json)
    if not dry_run:
        _scrub(log, done)


def _scrub(log: LogUrl, done: EmptyReceipt) -> None:
    """Overwrite what is left in the files of the log; print how, if it is in use."""
    if not done.sessions and not done.blobs:
        return
    try:
        with progress("writing the files of the log anew"):
            open_log.run(scrub_log(log))
    except (RejectedError, LogUnavailableError) as error:
        until = "until `cueline log scrub`, or the `VACUUM` of a server"
        typer.echo(visible(f"free pages still have the content, {until}: {error}"), err=True)


def _print_receipt(done: EmptyReceipt) -> None:
    for each in done.sessions:
        what = f"{count(each.events, 'event')} emptied"
        if each.events and each.archive:
            what = f"{what}, in {each.archive}"
        elif each.archive:
            what = f"its archive {each.archive} is not on this machine: delete it where it is"
        elif not each.events:
            what = "its archive was deleted"
        typer.echo(visible(f"{each.session}: {what}"))
    _print_kept(done)


def _print_dry_run(done: EmptyReceipt) -> None:
    if done.sessions:
        rows = [(each.session, str(each.events)) for each in done.sessions]
        print_table(("session", "events"), rows)
    _print_kept(done)


def _print_kept(done: EmptyReceipt) -> None:
    if done.blobs:
        typer.echo(f"{count(done.blobs, 'long value')} that no event names: removed")
    if not done.sessions:
        typer.echo("no session to remove")
    for each in done.kept:
        typer.echo(visible(f"{each} stays: it, or a session of its tree, may go on or is newer"))
