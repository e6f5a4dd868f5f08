"""`cueline submit` and `retry`: runs of the blueprints that runners offer."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.exit_report import exit_of_status
from cueline.cli.option import (
    DEFAULT_LOG,
    AtOption,
    EveryOption,
    JsonOption,
    LogOption,
    ParameterOption,
    SessionArgument,
    labels_of,
    parameters_of,
)
from cueline.cli.up_lookup import note_detached
from cueline.client.client import Client
from cueline.client.document import document
from cueline.client.session import Session
from cueline.console.text import json_of, visible
from cueline.events.log_url import LogUrl

WaitOption = Annotated[
    bool, typer.Option("--wait", help="Wait for the result and print it; Ctrl-C leaves the run.")
]


def submit(
    blueprint: Annotated[
        str, typer.Argument(metavar="BLUEPRINT", help="As `cueline blueprints` shows it.")
    ],
    goal: Annotated[
        str | None, typer.Argument(metavar="GOAL", help="What the agent is told first.")
    ] = None,
    *,
    parameter: ParameterOption = None,
    queue_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="N",
            help="How long it waits for a runner; 0: refuse it if none is online.",
        ),
    ] = 300.0,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="KEY=VALUE", help="A label; repeatable.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Start it once: with the same key again, it is the same run."
        ),
    ] = None,
    at: AtOption = None,
    every: EveryOption = None,
    wait: WaitOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Start a run of a blueprint, which `cueline up --blueprints FOLDER` offers.

    It prints the id of the run. The run waits until a runner claims it; if none
    does in time, it fails. A name that no runner ever offered is refused at once.

    \b
    Examples:
      cueline submit crawler "Read the news" --wait
      cueline submit report -p year=2026 -p format=pdf
      cueline submit crawler "Read the news" --at 07:30 --every 1d
    """
    texts, labels = parameters_of(parameter), labels_of(label)

    def start(client: Client) -> Awaitable[Session]:
        return client.submit(
            blueprint,
            goal,
            texts=texts,
            queue_seconds=queue_seconds,
            labels=labels,
            key=key,
            at=at,
            every=every,
        )

    _run(log, start, wait=wait, as_json=as_json)


def retry(
    run: SessionArgument,
    *,
    wait: WaitOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Start a run that has ended once more: a new run that names the old one.

    \b
    Examples:
      cueline retry 7f3a --wait
    """
    _run(log, lambda client: client.retry(run), wait=wait, as_json=as_json)


def _run(
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
