"""`cueline fork`: a new session that shares another's past, and goes on from there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import Exit
from cueline.cli.option import (
    ACCEPT,
    DEFAULT_LOG,
    AcceptOption,
    AddressOption,
    DetachOption,
    InlineOption,
    JsonOption,
    LogOption,
    RayOption,
    SessionArgument,
    WithoutSecretOption,
)
from cueline.cli.settings_context import settings_context_of

if TYPE_CHECKING:
    from cueline.cli.settings_context import SettingsContext
    from cueline.cli.start_request import RunOptions

_HELP = """Start a session that shares another's past up to a version, and goes on from there.

Nothing in flight crosses the fork. Its workspace is a copy, made now, in a
folder beside the original; the model is told so. `cueline tail -n 50` shows
the versions.

\b
Examples:
  cueline fork 7f3a --at 12 --goal "Try it without the cache"
  cueline fork 7f3a --at 12 --ray
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants to fork."""

    session: str
    at: int
    goal: str | None
    id: str | None
    accept_changed_tools: bool


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fork", help=_HELP, short_help="Go on from another session's past.")(fork)


def fork(
    ctx: typer.Context,
    session: SessionArgument,
    *,
    at: Annotated[
        int, typer.Option(min=1, help="The last version of the shared past.", metavar="VERSION")
    ],
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is told to do from there.")
    ] = None,
    inline: InlineOption = False,
    ray: RayOption = False,
    detach: DetachOption = False,
    address: AddressOption = None,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The new session's id, instead of a random one."),
    ] = None,
    without_secret: WithoutSecretOption = None,
    accept_changed_tools: AcceptOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Fork a session."""
    from cueline.cli.start_request import run_options_of

    options = run_options_of(
        ctx,
        log,
        inline=inline,
        ray=ray,
        detach=detach,
        address=address,
        as_json=as_json,
        without_secrets=without_secret,
    )
    asked = Asked(session, at, goal, name, accept_changed_tools)
    raise typer.Exit(open_log.run(_fork(asked, options, settings_context_of(ctx))))


async def _fork(asked: Asked, options: "RunOptions", outside: "SettingsContext") -> Exit:
    from cueline.cli.start_request import carry_on
    from cueline.cli.up_lookup import command
    from cueline.client.client import open_client

    way = command(options.log, "fork", asked.session, "--at", str(asked.at))
    async with open_client(options.log) as client:
        request = await client.fork_request(
            asked.session,
            at=asked.at,
            goal=asked.goal,
            id=asked.id,
            accept_changed_tools=asked.accept_changed_tools,
            accept_with=f"{way} {ACCEPT}",
            without_secrets=options.without_secrets,
            attached=options.attended,
        )
        approval = outside.settings.approval
        seconds = approval.attached_seconds if options.attended else approval.detached_seconds
        request = request.with_time_to_answer(seconds)
        return await carry_on(client, request.stream, options, request.submit)
