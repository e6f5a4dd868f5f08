"""`cueline resume`: take a session over, and really go on with it."""

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import SessionArgument, TreeOption
from cueline.cli.run_options import ACCEPT, AcceptOption, RunOptions, takes_run_options
from cueline.cli.session_run import carry_on
from cueline.cli.up_lookup import resume_command
from cueline.client.client import Client, open_client
from cueline.client.resume import ResumeRequest, resume_request
from cueline.client.session import Session
from cueline.client.tree import over_tree


@takes_run_options
def resume(
    options: RunOptions,
    session: SessionArgument,
    *,
    tree: TreeOption = False,
    accept_changed_tools: AcceptOption = False,
) -> None:
    """Go on with a session that crashed, was paused, or was interrupted.

    It goes on from what is in the log, with the agent as it was recorded, and is
    shown live. A session that has ended is refused, and so is one that a living
    process drives, unless it is paused: then that process is told to go on.
    With --tree all sessions below it go on, too.

    \b
    Examples:
      cueline resume 7f3a
      cueline resume 7f3a --ray
      cueline resume 7f3a --without-secret SHOP_TOKEN
    """

    async def resumed() -> Exit:
        async with open_client(options.log) as client:

            async def request_of(each: str) -> ResumeRequest:
                return await resume_request(
                    client,
                    await client.find(each),
                    accept_changed_tools=accept_changed_tools,
                    accept_with=f"{resume_command(options.log, each)} {ACCEPT}",
                    without_secrets=options.without_secrets,
                )

            async def record(runtime: Client) -> Session:
                first, *_ = [await each.submit(runtime) for each in requests]
                return first

            requests = await over_tree(client, session, request_of, tree=tree)
            return await carry_on(client, requests[0].stream, options, record, show_past=False)

    raise typer.Exit(open_log.run(resumed()))
