"""`cueline audit`: list who did what and when; verify, seal and prove the log."""

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import (
    DEFAULT_LOG,
    CsvOption,
    JsonOption,
    LogOption,
    SessionFilter,
    complete_session,
    complete_type,
    is_typed,
    moment,
)
from cueline.client.document import document
from cueline.client.open_read_models import Page
from cueline.client.rows import AuditRow, SqlRows, check_type
from cueline.client.seal import InclusionProof
from cueline.client.verify import Verified
from cueline.console.progress import progress
from cueline.console.table import print_csv, print_table
from cueline.console.text import count, date_time, json_of, visible
from cueline.events.log_url import LogUrl
from cueline.events.stream import category_of, shown
from cueline.runtime.seal import SealReceipt

if TYPE_CHECKING:
    from cueline.client.client import Client
    from cueline.client.reader import Reader

group = typer.Typer()
_OF_SQL = frozenset({"sql", "limit", "log", "as_json", "as_csv"})
"""The options that `--sql` takes."""


@group.callback(invoke_without_command=True)
def audit(
    ctx: typer.Context,
    *,
    session: SessionFilter = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--type", metavar="TYPE", help="Only of this type.", autocompletion=complete_type
        ),
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="TOOL", help="Only about this tool.")] = None,
    actor: Annotated[
        str | None,
        typer.Option(
            metavar="WHO", help="Only by user, agent, runner or system, or by one: user:ada."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="Only with all these words; `src/*` is a beginning."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="SELECT", help="Answer this query on the read models instead."),
    ] = None,
    correlation: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Only of this topmost session and all below it.",
            autocompletion=complete_session,
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
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with the events that come.")
    ] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """List events by session, type, tool, actor, words, correlation id and time.

    An event has to match all that you give. `--sql` asks the tables and views `events`,
    `sessions`, `turns`, `tool_calls`, `approvals`, `costs` and `fleet`.

    `cueline audit verify` checks the hash chain of every stream. `cueline audit seal`
    signs what the log holds, and `cueline audit prove` proves that an event is in it.

    \b
    Examples:
      cueline audit --session 7f3a --type ApprovalResolved
      cueline audit --tool delete_file --since 2026-01-01 --json
      cueline audit --text 'rm build' --type ToolStarted --csv
      cueline audit --actor user:ada --follow
      cueline audit --sql "SELECT id, tool, rule FROM tool_calls WHERE status = 'skipped'"
      cueline audit verify
    """
    if ctx.invoked_subcommand is not None:
        _check_nothing_typed(ctx, ctx.invoked_subcommand)
        return
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other")
    if sql is not None:
        for each in ctx.command.params:
            if is_typed(ctx, str(each.name)) and each.name not in _OF_SQL:
                raise typer.BadParameter(f"{each.opts[-1]} does not go with --sql: say it in SQL")
        answer = open_log.ask(log, lambda reader: reader.sql(sql, limit=limit))
        _print_sql(answer, as_json=as_json, as_csv=as_csv)
        return
    wanted = {
        "session": session,
        "type": kind,
        "tool": tool,
        "actor": actor,
        "text": text,
        "correlation": correlation,
        "since": moment("--since", since),
        "until": _whole_second(moment("--until", until)),
        "limit": limit,
    }
    if kind is not None:
        check_type(kind)
    show = _show_csv if as_csv else _show_json if as_json else _show_table
    open_log.run(_list(log, wanted, show, follow=follow))


def _print_sql(found: SqlRows, *, as_json: bool, as_csv: bool) -> None:
    rows = document(found.rows)
    if as_csv:
        print_csv(found.columns, rows)
    elif as_json:
        for each in rows:
            typer.echo(json_of(dict(zip(found.columns, each, strict=True))))
    elif rows:
        cells = [["" if each is None else str(each) for each in row] for row in rows]
        print_table(found.columns, cells)
    else:
        typer.echo("no rows")
    open_log.end_of(found)


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


async def _list(
    log: LogUrl, wanted: dict[str, Any], show: Callable[..., None], *, follow: bool
) -> None:
    async with open_log.reader(log) as reader:
        found = await reader.audit(**wanted)
        if found or show is not _show_table:
            show(found, head=True)
        elif not follow:
            typer.echo(f"no events that fit in {visible(str(log))}")
        if follow:
            await _go_on(reader, wanted, show, found)
    open_log.end_of(found)


async def _go_on(
    reader: "Reader", wanted: dict[str, Any], show: Callable[..., None], found: Page[AuditRow]
) -> None:
    """Show the events that come, until the command is ended."""
    seen = found[-1].position if found else 0
    async for position in reader.changes():
        more = True
        while more:
            found = await reader.audit(**wanted, after=seen)
            if found:
                show(found, head=False)
            last = found[-1].position if found else 0
            more, seen = found.more, last if found.more else max(position, last)


def _show_json(found: Page[AuditRow], *, head: bool) -> None:  # noqa: ARG001 - as the others
    for each in open_log.rows(found):
        typer.echo(json_of(each))


def _show_csv(found: Page[AuditRow], *, head: bool) -> None:
    names = [each.name for each in fields(AuditRow)] if head else ()
    print_csv(names, [list(each.values()) for each in open_log.rows(found)])


def _show_table(found: Page[AuditRow], *, head: bool) -> None:
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
    if head:
        print_table(("position", "recorded", "stream", "type", "tool", "actor"), rows)
    else:
        for row in rows:
            typer.echo(visible("  ".join(filter(None, row))))


@group.command("verify", short_help="Check every chain and seal.")
def verify(
    *,
    seals: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="The seals outside of the log; see `audit seal --out`."
        ),
    ] = None,
    signed_by: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The public key that has to have signed each seal."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Check every event against the hash chain of its stream, and against the seals.

    In each stream it names the first row that differs from the appended one, or that
    was emptied, and exits with code 1. A chain shows accidental damage and careless
    edits: it has no key, so anyone who can write the file can compute it again.
    The seals show that, too, and also sessions and newest events that were removed,
    as far as `cueline audit seal` has sealed the log.

    \b
    Examples:
      cueline audit verify --log work/log.db
      cueline audit verify --seals /mnt/elsewhere/seals
    """
    from cueline.client.verify import verify_log

    async def check(reader: "Reader") -> Verified:
        if seals is None and signed_by is None:
            return await reader.verify()
        return await verify_log(reader.log, seals, signed_by)

    with progress("checking", plain=as_json):
        checked = open_log.ask(log, check)
    open_log.print_answer(checked, _print_checked, as_json=as_json)
    raise typer.Exit(Exit.FAILED if checked.bad else Exit.DONE)


def _print_checked(checked: Verified) -> None:
    for each in checked.bad:
        typer.echo(visible(f"{each.place}: {each.reason}"))
    if checked.first is not None:
        at, session = checked.first.position, checked.first.session
        touched = "" if session is None else f", in the session {session}"
        typer.echo(visible(f"the first bad position is {at}{touched}"))
        return
    events, streams = f"{checked.events:,} events", f"{checked.streams:,} streams"
    typer.echo(f"{events} in {streams}: every chain is intact")
    if checked.seals:
        seals = count(checked.seals, "seal")
        typer.echo(f"{seals} over the first {checked.sealed:,} events: nothing was changed since")
        for key in checked.keys:
            typer.echo(visible(f"signed by {key}"))


@group.command("seal", short_help="Sign what the log holds.")
def seal(
    *,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An Ed25519 key in PEM; default: your own, made once."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the seal goes, too; better on another machine."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Seal all events of the log: sign the root of a Merkle tree over them.

    Only the events since the last seal are read. The seal is an event of the log, and
    a file outside of it. `cueline audit verify` compares both with the events.

    \b
    Examples:
      cueline audit seal
      cueline audit seal --key /run/secrets/seal.pem --out /mnt/elsewhere/seals
    """

    async def make(client: "Client") -> SealReceipt:
        from cueline.config.environment import HERE
        from cueline.providers.seal_key import seal_key
        from cueline.runtime.seal import seal_log

        return await seal_log(client.log, seal_key(HERE, key), out)

    with progress("sealing", plain=as_json):
        made = open_log.wish(log, make)
    open_log.print_answer(made, _print_seal, as_json=as_json)


def _print_seal(made: SealReceipt) -> None:
    new = f"{made.new:,} of them new" if made.new else "none of them new"
    typer.echo(f"sealed {count(made.size, 'event')}, {new}")
    typer.echo(visible(f"signed by {made.key}"))
    typer.echo(visible(f"written to {made.file}"))


@group.command("prove", short_help="Prove that an event is in the sealed log.")
def prove(
    position: Annotated[
        int,
        typer.Argument(min=1, metavar="POSITION", help="The event, as `cueline audit` lists it."),
    ],
    *,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Print the proof that the event at POSITION is in the log, by the newest seal.

    With `--json`, `examples/proof/verify_proof.py` checks it without cueline and
    without the log.

    \b
    Example:
      cueline audit prove 18 --json > proof.json
    """
    from cueline.client.seal import prove as prove_event

    with progress("proving", plain=as_json):
        proof = open_log.ask(log, lambda reader: prove_event(reader.log, position))
    open_log.print_answer(proof, _print_proof, as_json=as_json)


def _print_proof(proof: InclusionProof) -> None:
    typer.echo(f"leaf {proof.index}:")
    typer.echo(proof.leaf, nl=False)
    typer.echo("\npath:")
    for each in proof.path:
        typer.echo(each)
    typer.echo(f"\nnote:\n{proof.note}\nkey:\n{proof.key}")
