"""`cueline open`: open a page of the log's server in the browser, signed in."""

import webbrowser
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, complete_session
from cueline.client.client import Client
from cueline.client.server_address import server_of
from cueline.client.tokens import issue_code
from cueline.console.text import json_of
from cueline.errors import ConfigError
from cueline.events.stream import shown

_EVERY = "//0.0.0.0:"
"""In the URL of a server that listens at every address of this machine."""


def open_page(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="The session to show; by default the list of all.",
            autocompletion=complete_session,
        ),
    ] = None,
    *,
    approval: Annotated[
        str | None, typer.Option(metavar="ID", help="Show this approval instead.")
    ] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Only print the link, which signs in once.")
    ] = False,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Sign in as this person; default: you.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="What the browser may do; repeatable; default: admin."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Open a page of the running `cueline serve` in the browser, signed in.

    The link counts once, for 5 minutes.

    \b
    Examples:
      cueline open
      cueline open 7f3a
      cueline open --approval 7f3a.3.0.1 --print --person ada --scope approve
    """

    async def link(client: Client) -> str:
        url = await server_of(client.log)
        if url is None:
            raise ConfigError("open", f"no server of {log} runs; `cueline serve` starts one")
        path = "/"
        if approval is not None:
            path = f"/approvals/{approval.replace('/', ':')}"
        elif session is not None:
            path = f"/sessions/{shown(await client.find(session)).replace('/', ':')}"
        code = await issue_code(client, person or client.log.user, scopes=scope or ("admin",))
        return f"{url.replace(_EVERY, '//127.0.0.1:')}/login?code={code.text}&next={path}"

    made = open_log.wish(log, link)
    if as_json:
        typer.echo(json_of({"url": made}))
    elif only_print or not webbrowser.open(made):
        typer.echo(made)
