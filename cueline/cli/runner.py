"""`cueline runner`: run the calls of tools on this machine, for a log behind a server."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import print_redacted
from cueline.cli.option import JsonOption, amounts_of, labels_of
from cueline.cli.settings_context import settings_context_of
from cueline.cli.terminal import ending_signals
from cueline.client.blueprint_folder import read_blueprints
from cueline.client.document import document
from cueline.client.remote_runners import process_here
from cueline.clock import SystemClock
from cueline.console.text import json_of
from cueline.events.log_url import LogUrl
from cueline.runtime.runner_process import RunnerOffer, RunnerProcess

_GROUP = """Run the calls of tools on this machine, for a log behind a server.

\b
Examples:
  cueline runner start --connect https://agents.example.com --name build-box
"""
group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.callback()
def _group() -> None:
    pass  # so that `start` keeps its name although it is the only command


@group.command("start", short_help="Register a runner, and run its calls.")
def start(
    ctx: typer.Context,
    *,
    connect: Annotated[
        str, typer.Option(metavar="URL", help="The server of `cueline up --serve`.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="The name that calls can demand.")],
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A label that calls can demand. Repeatable."),
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="A resource, such as gpus=1. Repeatable."),
    ] = None,
    blueprints: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Agent files that the runner offers for runs."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Register this process as a runner of a server, and run its calls.

    It connects to the server, and opens no port itself. CUELINE_TOKEN is its token, with the
    scope `runner`; with --blueprints it needs `admin`, as an agent can name commands and keys
    of the server. It gets the calls that demand its name or one of its labels, and those of the
    runs of its blueprints. Their tools have to be importable here.
    Ctrl-C ends it after the running calls; a second one ends them, too.

    \b
    Examples:
      cueline runner start --connect https://agents.example.com --name build-box
      cueline runner start --connect http://127.0.0.1:8642 --name gpu --resource gpus=1
      cueline runner start --connect https://agents.example.com --name crawl --blueprints agents
    """
    from cueline.gateway.remote_server import HttpServer

    outside = settings_context_of(ctx)
    offered = () if blueprints is None else read_blueprints(blueprints, under=outside.under)
    offer = RunnerOffer(
        name=name,
        process=asdict(process_here()),
        labels=labels_of(label),
        resources=amounts_of(resource),
        blueprints=[each.model_dump(mode="json") for each in offered],
    )

    def say(text: str) -> None:
        if as_json:
            typer.echo(json_of({"said": document(text)}))
        else:
            print_redacted(text, outside)

    async def work() -> None:
        server = HttpServer(LogUrl.of(connect))
        server.use(SystemClock())
        process = RunnerProcess(server.call, offer, say)
        serving = asyncio.create_task(process.run())
        loop = asyncio.get_running_loop()

        def end() -> None:
            if process.leaving:
                serving.cancel()
            else:
                say("leaving after the running calls; a second Ctrl-C ends them")
            process.leave()

        for each in ending_signals():
            loop.add_signal_handler(each, end)
        try:
            await asyncio.wait([serving])
            if not serving.cancelled():
                serving.result()
        finally:
            await server.close()

    open_log.run(work())
