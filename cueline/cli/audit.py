"""`cueline audit`: list who did what and when; verify the hash chains of the log."""

from datetime import datetime
from typing import Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionFilter, is_typed, moment
from cueline.client.open_read_models import Page
from cueline.client.rows import AuditRow, check_type
from cueline.client.verify import Verified
from cueline.console.table import print_table
from cueline.console.text import date_time, json_of, visible
from cueline.events.log_url import LogUrl
from cueline.events.stream import category_of, shown

group = typer.Typer()


@group.callback(invoke_without_command=True)
def audit(
    ctx: typer.Context,
    *,
    session: SessionFilter = None,
    kind: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only of this type.")
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="TOOL", help="Only about this tool.")] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            metavar="WHO", help="Only by user, agent, runner or system, perhaps `user:ada`."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="From then on: 2026-01-31, 2026-01-31T12:00, or 30d."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Up to then, that second included; a day is its beginning."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="At most N events, the newest.")
    ] = 1000,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List events by session, type, tool, actor and time.

    `cueline audit verify` checks the hash chain of every stream.

    \b
    Examples:
      cueline audit --session 7f3a --type ApprovalResolved
      cueline audit --tool delete_file --since 2026-01-01 --json
      cueline audit --actor user:ada
      cueline audit verify
    """
    if ctx.invoked_subcommand is not None:
        _check_nothing_typed(ctx, ctx.invoked_subcommand)
        return
    wanted = {
        "session": session,
        "type": kind,
        "tool": tool,
        "actor": actor,
        "since": moment("--since", since),
        "until": _whole_second(moment("--until", until)),
        "limit": limit,
    }
    if kind is not None:
        check_type(kind)
    open_log.run(_list(log, wanted, as_json=as_json))


def _whole_second(until: datetime | None) -> datetime | None:
    """Return the end of the second *until*, because listed times have no fractions."""
    return until and until.replace(microsecond=until.microsecond or 999_999)


def _check_nothing_typed(ctx: typer.Context, command: str) -> None:
    """Refuse options before *command*: it would ignore them, and could use another log.

    Raises:
        BadParameter: put the option behind the command; the message names it.
    """
    for each in ctx.command.params:
        if is_typed(ctx, str(each.name)):
            raise typer.BadParameter(f"{each.opts[0]} goes behind `{command}`")


async def _list(log: LogUrl, wanted: dict[str, Any], *, as_json: bool) -> None:
    async with open_log.reader(log) as reader:
        found = await reader.audit(**wanted)
    if as_json:
        for each in open_log.rows(found):
            typer.echo(json_of(each))
    elif found:
        _print(found)
    else:
        typer.echo(f"no events that fit in {visible(str(log))}")
    open_log.end_of(found)


def _print(found: Page[AuditRow]) -> None:
    rows = [
        (
            str(each.position),
            date_time(each.recorded_at),
            f"{category_of(each.stream)} {shown(each.stream)}@{each.version}",
            each.type,
            each.tool or "",
            each.actor,
        )
        for each in found
    ]
    print_table(("position", "recorded", "stream", "type", "tool", "actor"), rows)


@group.command("verify", short_help="Check every chain.")
def verify(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Check every event of the log against the hash chain of its stream.

    In each stream it names the first row that differs from the appended one, or that
    was emptied, and exits with code 1. It finds accidental damage and careless edits.
    The chain has no key: anyone who can write the file can compute it again.

    \b
    Example:
      cueline audit verify --log work/log.db
    """
    checked = open_log.ask(log, lambda reader: reader.verify())
    open_log.print_answer(checked, _print_checked, as_json=as_json)
    raise typer.Exit(Exit.FAILED if checked.bad else Exit.DONE)


def _print_checked(checked: Verified) -> None:
    for each in checked.bad:
        typer.echo(f"{each.place}: {each.reason}")
    if not checked.bad:
        events, streams = f"{checked.events:,} events", f"{checked.streams:,} streams"
        typer.echo(f"{events} in {streams}: every chain is intact")
