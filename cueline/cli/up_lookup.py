"""Finds the `cueline up` of a log, and the commands that continue a session."""

import json
from importlib.metadata import version
from shlex import quote
from typing import TYPE_CHECKING

import typer

from cueline.cli.failure import Exit
from cueline.cli.settings_context import naming
from cueline.cli.terminal import print_json
from cueline.console.text import date_time, visible
from cueline.events.log_url import LogUrl
from cueline.runtime.up_record import find_up

if TYPE_CHECKING:
    from cueline.client.receipt import Receipt


def is_up(path: LogUrl) -> bool:
    """Whether a `cueline up` accepts the sessions of the log at *path*."""
    return find_up(path) is not None


def other_version(path: LogUrl) -> str | None:
    """Print a warning if the `cueline up` of the log at *path* has another version."""
    running, ours = find_up(path), version("cueline")
    if running is None or running.version == ours:
        return None
    return (
        f"warning: the `cueline up` of this log is cueline {running.version}, and this is {ours}: "
        f"what this records it may not know; `{command(path, 'down')}`, then start it again"
    )


def command(log: LogUrl, *words: str) -> str:
    """Return a command on this log, to type or paste."""
    return " ".join(quote(word) for word in ("cueline", *words)) + naming(log)


def resume_command(log: LogUrl, id: str) -> str:  # noqa: A002 - the word of the log
    """Return the command that continues a session."""
    return command(log, "resume", id)


def print_receipt(log: LogUrl, receipt: "Receipt", text: str, *, as_json: bool) -> None:
    """Print the receipt of a wish and, if not *as_json*, the next step."""
    if as_json:
        print_json(json.dumps(receipt.to_json()))
        return
    if receipt.read_by == "nobody":
        way = resume_command(log, receipt.session)
        text += f"; nothing drives it now, it counts when it is next driven: `{way}`"
    typer.echo(text)


def note_detached(log: LogUrl, receipt: "Receipt", *, as_json: bool) -> Exit:
    """Print the id of a recorded session, and the process that will run it."""
    if (warning := other_version(log)) is not None:
        typer.echo(visible(warning), err=True)
    if as_json:
        print_json(json.dumps(receipt.to_json()))
        return Exit.DONE
    typer.echo(receipt.session)
    from cueline.client.receipt import StartReceipt

    if isinstance(receipt, StartReceipt) and receipt.starts_at is not None:
        why = f"; the clocks skip {receipt.skipped}" if receipt.skipped else ""
        typer.echo(f"it starts {date_time(receipt.starts_at)}{why}", err=True)
    if receipt.read_by == "nobody":
        up_command = command(log, "up")
        typer.echo(f"it is recorded; nothing runs that would take it up: `{up_command}`", err=True)
    return Exit.DONE
