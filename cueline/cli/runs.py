"""`cueline runs`, `blueprints` and `runners`: what runs, and who offers what."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.console.text import duration, json_of, one_line, visible

if TYPE_CHECKING:
    from cueline.client.runs import BlueprintRow, RunnerRow, RunRow

_RUNS = """List the runs of blueprints, the last changed first.

`queued`: no runner has claimed it yet. `claimed`: it has not got its first
reply. `cueline show` and `tail` show a run like any session.

\b
Examples:
  cueline runs
  cueline runs --status queued --blueprint crawler --json
"""
_BLUEPRINTS = """List the blueprints that runners offer, or have offered.

\b
Examples:
  cueline blueprints
"""
_RUNNERS = """List the registered runners, their last heartbeats and their blueprints.

A runner that is `stale` gets no more runs, until it is heard again.

\b
Examples:
  cueline runners
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("runs", help=_RUNS, short_help="List the runs of blueprints.")(runs)
    app.command("blueprints", help=_BLUEPRINTS, short_help="List the blueprints.")(blueprints)
    app.command("runners", help=_RUNNERS, short_help="List the registered runners.")(runners)


def runs(
    *,
    status: Annotated[
        str | None,
        typer.Option(metavar="STATUS", help="Only these: queued, claimed, or as of `list`."),
    ] = None,
    blueprint: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only those of this blueprint.")
    ] = None,
    runner: Annotated[
        str | None, typer.Option(metavar="RUNNER", help="Only those that this runner claimed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 50,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """List runs."""
    wanted = {"status": status, "blueprint": blueprint, "runner": runner}
    found = open_log.ask(log, lambda reader: reader.runs(limit=limit, **wanted))
    if as_json:
        typer.echo(json_of(open_log.rows(found), indent=2))
    else:
        what = "runs that fit" if any(wanted.values()) else "runs"
        _print(what, ("run", "status", "blueprint", "runner", "age", "error"), _runs(found))
    open_log.end_of(found)


def blueprints(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List blueprints."""
    found = open_log.ask(log, lambda reader: reader.blueprints())
    head = ("blueprint", "status", "runner", "model", "parameters", "description")
    _show("blueprints", head, found, [_blueprint(each) for each in found], as_json=as_json)


def runners(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List runners."""
    found, now = open_log.ask(log, lambda reader: reader.runners()), datetime.now(UTC)
    head = ("runner", "status", "heard", "machine", "pid", "blueprints")
    _show("runners", head, found, [_runner(each, now) for each in found], as_json=as_json)


def _show(
    what: str,
    head: Sequence[str],
    found: "Sequence[BlueprintRow] | Sequence[RunnerRow]",
    rows: Sequence[Sequence[str]],
    *,
    as_json: bool,
) -> None:
    from cueline.client.document import document

    if as_json:
        typer.echo(json_of(document(found), indent=2))
    else:
        _print(what, head, rows)


def _print(what: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from cueline.console.table import print_table

    if rows:
        print_table(head, rows)
    else:
        typer.echo(f"no {what}; `cueline up --blueprints FOLDER` offers blueprints")


def _runs(found: "Sequence[RunRow]") -> list[Sequence[str]]:
    now = datetime.now(UTC)
    return [
        (
            each.id,
            each.status,
            visible(each.blueprint),
            each.runner or "",
            duration((now - each.created_at).total_seconds()),
            one_line(each.error or "", 60),
        )
        for each in found
    ]


def _blueprint(row: "BlueprintRow") -> Sequence[str]:
    properties = (row.parameters_schema or {}).get("properties")
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    model = f"{row.provider} {row.model}".strip()
    said = one_line(row.description, 60)
    return visible(row.name), row.status, row.runner or "", visible(model), visible(names), said


def _runner(row: "RunnerRow", now: datetime) -> Sequence[str]:
    heard = "" if row.heard_at is None else duration((now - row.heard_at).total_seconds())
    offers = visible(", ".join(row.blueprints))
    return row.incarnation, row.status, heard, row.machine[:12], str(row.pid), offers
