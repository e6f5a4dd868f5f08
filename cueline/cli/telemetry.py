"""`cueline telemetry`: export traces of the sessions to OpenTelemetry."""

from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import open_log
from cueline.cli.failure import print_redacted
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.settings_context import settings_context_of
from cueline.console.progress import progress
from cueline.console.text import count, visible
from cueline.errors import ConfigError, CuelineError

if TYPE_CHECKING:
    from cueline.client.client import Client
    from cueline.telemetry.export import ExportReceipt

group = typer.Typer()


@group.callback()
def telemetry() -> None:
    """Export traces of the sessions to a back-end of OpenTelemetry."""


@group.command("export", short_help="Send new spans to a back-end.")
def export(
    ctx: typer.Context,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where the back-end takes OTLP; else `telemetry.endpoint`."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on: send new spans as they come.")
    ] = False,
    start: Annotated[
        int | None,
        typer.Option(
            "--from", min=0, metavar="POSITION", help="Begin after this event, not at the cursor."
        ),
    ] = None,
    cursor: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The name of the cursor; else one made of the URL."),
    ] = None,
    content: Annotated[
        bool | None,
        typer.Option("--content/--no-content", help="Also what people, models and tools said."),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Send the spans of the log's sessions to a back-end, by OTLP over HTTP.

    The log remembers how far each back-end has them, so the same command again sends
    only what is new, and a new back-end gets everything. A span has the same ids and
    times each time it is sent.
    OTEL_EXPORTER_OTLP_HEADERS may have the key of the back-end.

    \b
    Examples:
      cueline telemetry export --to http://localhost:4318/v1/traces
      cueline telemetry export --to http://localhost:4318/v1/traces --follow
      cueline telemetry export --to https://otel.example.com/v1/traces --from 120000
    """
    outside = settings_context_of(ctx)
    given = outside.settings.telemetry
    endpoint = to or given.endpoint
    if endpoint is None:
        why = "no back-end is named: give --to, or set `telemetry.endpoint`"
        raise ConfigError("--to", why)
    said = given.content if content is None else content

    def trouble(what: str, error: CuelineError) -> None:
        print_redacted(f"{what}: {error}", outside)

    async def work(client: "Client") -> "ExportReceipt":
        from cueline.client.telemetry import follow as go_on
        from cueline.client.telemetry import span_export

        exporting = span_export(client.log, endpoint, cursor=cursor, content=said)
        await exporting.begin(start)
        with progress("exporting", plain=as_json):
            receipt = await exporting.catch_up()
        if follow:
            typer.echo("following the log; Ctrl-C ends it", err=True)
            await go_on(client.log, exporting, trouble)
        return receipt

    open_log.print_answer(open_log.wish(log, work), _print_receipt, as_json=as_json)


def _print_receipt(sent: "ExportReceipt") -> None:
    where = f"the back-end has the log up to event {sent.position:,}"
    typer.echo(visible(f"sent {count(sent.spans, 'span')}; {where} (cursor {sent.cursor})"))
