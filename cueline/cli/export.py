"""`cueline export`: a session as JSON."""

from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.client.document import document
from cueline.client.export import event_document, export_of
from cueline.console.text import json_of


def export(
    session: SessionArgument,
    *,
    events: Annotated[bool, typer.Option("--events", help="One JSON object an event.")] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = True,  # noqa: ARG001 - every command takes it; this one prints nothing else
) -> None:
    # Printed when the loop is over: Ctrl-C ends it at once.
    """Print a session as one JSON document, or with --events as JSON lines.

    The document holds status, messages, tool calls, metrics, limits, error and
    version. A row that cannot be read is named on stderr, what is before it is
    printed, and the exit code is 1.

    \b
    Examples:
      cueline export 7f3a > 7f3a.json
      cueline export 7f3a --events | jq -r .type
    """
    history = open_log.run(open_log.history(log, session))
    if events:
        for recorded, fact in history.events:
            typer.echo(json_of(event_document(recorded, fact)))
    else:
        typer.echo(json_of(document(export_of(history)), indent=2))
    raise typer.Exit(open_log.exit_of_damage(history.damage))
