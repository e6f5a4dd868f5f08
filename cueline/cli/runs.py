"""`cueline runs`, `blueprints`, `runners`, `submit` and `retry`: list and start runs."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.exit_report import exit_of_status
from cueline.cli.option import (
    DEFAULT_LOG,
    JsonOption,
    LogOption,
    SessionArgument,
    takes,
)
from cueline.cli.start_options import start_options_of
from cueline.cli.up_lookup import note_detached
from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.rows import RunRow
from cueline.client.runs import BlueprintRow, RunnerRow
from cueline.client.runs import submit as submit_run
from cueline.client.session import Session
from cueline.client.start import StartOptions
from cueline.console.table import print_table
from cueline.console.text import date_time, duration, json_of, one_line, visible
from cueline.events.log_url import LogUrl


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
    """List the runs of blueprints, the last changed first.

    `queued`: no runner has claimed the run yet. `claimed`: it has no reply yet.
    `queued: 2 at a time`: it waits for the end of other runs of its blueprint, whose
    `max_running` is 2. `cueline show` and `tail` show a run like any session.

    \b
    Examples:
      cueline runs
      cueline runs --status queued --blueprint crawler --json
    """
    wanted = {"status": status, "blueprint": blueprint, "runner": runner}
    found = open_log.ask(log, lambda reader: reader.runs(limit=limit, **wanted))
    empty = _empty("runs that fit" if any(wanted.values()) else "runs")
    open_log.print_page(found, _print_runs, empty, as_json=as_json)


def blueprints(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List the blueprints that runners offer, or have offered.

    \b
    Examples:
      cueline blueprints
    """
    found = open_log.ask(log, lambda reader: reader.blueprints())
    open_log.print_answer(found, _print_blueprints, as_json=as_json, empty=_empty("blueprints"))


def runners(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """List the registered runners, their last heartbeats and their blueprints.

    A `stale` runner gets no runs until it sends a heartbeat again.

    \b
    Examples:
      cueline runners
    """
    found = open_log.ask(log, lambda reader: reader.runners())
    open_log.print_answer(found, _print_runners, as_json=as_json, empty=_empty("runners"))


def _empty(what: str) -> str:
    return f"no {what}; `cueline up --blueprints FOLDER` offers blueprints"


def _print_runs(found: Sequence[RunRow]) -> None:
    rows = [
        (
            each.id,
            _status(each),
            visible(each.blueprint),
            each.runner or "",
            _age(each.created_at),
            one_line(each.error or "", 60),
        )
        for each in found
    ]
    print_table(("run", "status", "blueprint", "runner", "age", "error"), rows)


def _status(row: RunRow) -> str:
    if row.starts_at is not None:
        return f"{row.status}, starts {date_time(row.starts_at)}"
    return row.status if row.max_running is None else f"{row.status}: {row.max_running} at a time"


def _print_blueprints(found: Sequence[BlueprintRow]) -> None:
    rows = []
    for each in found:
        properties = (each.parameters_schema or {}).get("properties")
        names = ", ".join(properties) if isinstance(properties, dict) else ""
        texts = (f"{each.provider} {each.model}".strip(), names, one_line(each.description, 60))
        rows.append((visible(each.name), each.status, each.runner or "", *map(visible, texts)))
    head = ("blueprint", "status", "runner", "model", "parameters", "description")
    print_table(head, rows)


def _print_runners(found: Sequence[RunnerRow]) -> None:
    rows = []
    for each in found:
        heard = "" if each.heard_at is None else _age(each.heard_at)
        offers = visible(", ".join(each.blueprints))
        who = (each.machine[:12], str(each.pid))
        rows.append((each.incarnation, visible(each.name), each.status, heard, *who, offers))
    print_table(("runner", "name", "status", "heard", "machine", "pid", "blueprints"), rows)


def _age(since: datetime) -> str:
    return duration((datetime.now(UTC) - since).total_seconds())


WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for the result and print it; Ctrl-C leaves the run.")
]


@takes(start_options_of)
def submit(
    start: StartOptions,
    blueprint: Annotated[
        str, typer.Argument(metavar="BLUEPRINT", help="As `cueline blueprints` shows it.")
    ],
    goal: Annotated[
        str | None, typer.Argument(metavar="GOAL", help="What the agent is told first.")
    ] = None,
    *,
    queue_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="N",
            help="How long it waits for a runner; 0: refuse it if none is online.",
        ),
    ] = 300.0,
    wait: WaitOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Start a run of a blueprint that `cueline up --blueprints FOLDER` offers.

    It prints the id of the run. The run waits until a runner claims it; if no runner
    does in time, the run fails. A name that was never offered is refused at once.

    \b
    Examples:
      cueline submit crawler "Read the news" --wait
      cueline submit report -p year=2026 -p format=pdf
      cueline submit crawler "Read the news" --at 07:30 --every 1d
    """
    start = replace(start, goal=goal)

    def submitted(client: Client) -> Awaitable[Session]:
        if client.log.server is not None:
            if start.attachments:
                raise typer.BadParameter("a run on the log of a server takes no attachments")
            names = ("parameters", "texts", "parent", "labels", "key", "at", "every")
            told = {name: getattr(start, name) for name in names}
            return client.submit(blueprint, goal, queue_seconds=queue_seconds, **told)
        return submit_run(client, blueprint, start, queue_seconds=queue_seconds)

    _start(log, submitted, wait=wait, as_json=as_json)


def retry(
    run: SessionArgument,
    *,
    wait: WaitOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Start an ended run again, as a new run that names the old one.

    \b
    Examples:
      cueline retry 7f3a --wait
    """
    _start(log, lambda client: client.retry(run), wait=wait, as_json=as_json)


def _start(
    log: LogUrl,
    start: Callable[[Client], Awaitable[Session]],
    *,
    wait: bool,
    as_json: bool,
) -> None:
    async def submitted(client: Client) -> int:
        session = await start(client)
        assert session.receipt is not None, "it was started now"
        if not wait:
            return note_detached(log, session.receipt, as_json=as_json)
        typer.echo(session.id, err=True)
        result = await session.result()
        if as_json:
            typer.echo(json_of({"session": session.id, **document(result)}, indent=2))
        else:
            typer.echo(visible(result.text), err=result.status in ("failed", "stopped"))
        return exit_of_status(result.status)

    raise typer.Exit(open_log.wish(log, submitted))
