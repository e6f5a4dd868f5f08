"""`cueline fork`: a new session that shares another's past, and goes on from there."""

from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import SessionArgument
from cueline.cli.run_options import ACCEPT, AcceptOption, RunOptions, takes_run_options
from cueline.cli.session_run import carry_on, seconds_to_answer
from cueline.cli.up_lookup import command
from cueline.client.client import open_client
from cueline.client.fork import fork_request


@takes_run_options
def fork(
    options: RunOptions,
    session: SessionArgument,
    *,
    at: Annotated[
        int, typer.Option(min=1, help="The last version of the shared past.", metavar="VERSION")
    ],
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is told to do from there.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The new session's id, instead of a random one."),
    ] = None,
    accept_changed_tools: AcceptOption = False,
) -> None:
    """Start a session that shares another's past up to a version, and goes on from there.

    Nothing in flight crosses the fork. Its workspace is a copy, made now, in a
    folder beside the original; the model is told so. `cueline tail -n 50` shows
    the versions.

    \b
    Examples:
      cueline fork 7f3a --at 12 --goal "Try it without the cache"
      cueline fork 7f3a --at 12 --ray
    """

    async def forked() -> Exit:
        async with open_client(options.log) as client:
            request = await fork_request(
                client,
                await client.find(session),
                at=at,
                goal=goal,
                id=name,
                accept_changed_tools=accept_changed_tools,
                accept_with=f"{command(options.log, 'fork', session, '--at', str(at))} {ACCEPT}",
                without_secrets=options.without_secrets,
                attached=options.attended,
            )
            request = request.with_time_to_answer(seconds_to_answer(options))
            return await carry_on(client, request.stream, options, request.submit)

    raise typer.Exit(open_log.run(forked()))
