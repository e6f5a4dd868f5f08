"""`cueline serve`: the HTTP API, the pages and the MCP endpoint of a log."""

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import print_redacted
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.settings_context import settings_context_of
from cueline.cli.terminal import is_attended
from cueline.cli.trust import check_trust
from cueline.client.client import open_client
from cueline.client.remote_runners import with_relay
from cueline.client.runtime import runtime_on
from cueline.client.telemetry import exporting
from cueline.client.tokens import CODE_SECONDS, issue_code
from cueline.config.config_file import TOKEN
from cueline.console.text import json_of
from cueline.errors import ConfigError, CuelineError
from cueline.events.stream import trouble_message
from cueline.runtime.sealer import sealing

if TYPE_CHECKING:
    from cueline.gateway.server import Address

HOST, PORT = "127.0.0.1", 8642
_FEWEST = 16
"""The fewest characters of a token that somebody chooses."""


CertificateOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The certificates for TLS, in PEM.")
]
KeyOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The key of the certificate, in PEM.")
]
ProxyOption = Annotated[bool, typer.Option("--behind-proxy", help="A proxy in front adds TLS.")]


def address_of(
    host: str, port: int, certificate: Path | None, key: Path | None, *, behind_proxy: bool
) -> "Address":
    """Return the address of a server.

    Raises:
        ConfigError: tokens would be sent unencrypted, or the packages of the server are missing.
    """
    try:
        from cueline.gateway.server import Address
    except ModuleNotFoundError as error:
        why = f"{error.name} is missing: `pip install 'cueline[serve]'` installs it"
        raise ConfigError("serve", why) from error
    address = Address(
        host=host, port=port, certificate=certificate, key=key, behind_proxy=behind_proxy
    )
    address.check()
    return address


def serve(
    ctx: typer.Context,
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen at this address of the machine.")
    ] = HOST,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Listen at this port; 0: a free one.")
    ] = PORT,
    certificate: CertificateOption = None,
    key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    while_stdin: Annotated[
        bool, typer.Option("--while-stdin", help="End when the standard input ends.")
    ] = False,
    relay: Annotated[
        int | None,
        typer.Option(hidden=True, help="The descriptor at which `up` relays to runners."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Serve the log by HTTP: its API, its pages, and MCP.

    Sessions run in the running `cueline up` of the log. Without one, those that are resumed,
    forked, retried or decided on over HTTP run in this process.
    A browser signs in by the printed link, a program by a token of `cueline tokens issue`.
    CUELINE_TOKEN is one more token, with all your rights. Other machines reach the server
    only with TLS: with --certificate and --key, or with a proxy in front.

    \b
    Examples:
      cueline serve
      cueline serve --port 0 --log data.db
      cueline serve --host 0.0.0.0 --certificate cert.pem --key key.pem
      curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8642/v1/sessions
    """
    address = address_of(host, port, certificate, key, behind_proxy=behind_proxy)
    outside = settings_context_of(ctx)
    check_trust(ctx, log, asks=is_attended() and not as_json)
    token = os.environ.get(TOKEN) or None
    if token is not None and len(token) < _FEWEST:
        raise ConfigError(TOKEN, f"it has fewer than {_FEWEST} characters; choose a longer token")

    def ready(url: str, code: str) -> None:
        link = f"{url}/login?code={code}" if code else None
        if as_json:
            typer.echo(json_of({"url": f"{url}/v1", "sign_in": link}))
            return
        typer.echo(f"cueline serves {log} at {url}")
        typer.echo(f"sign in, once within {CODE_SECONDS // 60} minutes: {link}")
        typer.echo("Ctrl-C ends it", err=True)

    def say(text: str) -> None:
        print_redacted(text, outside)

    def trouble(stream: str, error: CuelineError) -> None:
        say(trouble_message(stream, error))

    async def work() -> None:
        from cueline.gateway.server import end_with_stdin
        from cueline.gateway.server import serve as serve_log

        if while_stdin:
            end_with_stdin()
        async with open_client(log, must_exist=False) as client:
            with_settings = client.log.with_settings(outside.settings)
            if relay is not None:
                with_settings = with_relay(with_settings, relay)
            async with (
                runtime_on(with_settings, on_trouble=trouble) as runtime,
                exporting(runtime.log, outside.settings.telemetry, trouble),
            ):
                # Whoever keeps the server asks for a code when somebody needs one.
                code = None if while_stdin else await issue_code(runtime, runtime.log.user)
                told = partial(ready, code="" if code is None else code.text)
                with sealing(runtime.log, trouble):
                    await serve_log(runtime, address, token=token, ready=told, say=say)

    open_log.run(work())
