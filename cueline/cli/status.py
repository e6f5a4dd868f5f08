"""`cueline status`: show the processes that drive the sessions of a log."""

from collections.abc import Sequence

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.client.status import LogStatus, ProcessRow
from cueline.console.table import print_table
from cueline.console.text import count, visible

_AWAY = "its dispatcher, or the writer of the log, is away; `cueline up` starts what has ended"


def status(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Show the processes that drive the sessions of the log, and their machines.

    \b
    Examples:
      cueline status
      cueline status --json
    """
    found = open_log.ask(log, lambda reader: reader.status())
    open_log.print_answer(found, _print, as_json=as_json)
    if found.damage is not None:
        raise found.damage


def _print(found: LogStatus) -> None:
    up, there = found.up, "no `cueline up` is running for this log"
    if up is not None:
        ray = "kept by Ray" if up.pid is None else f"process {up.pid}, Ray"
        there = f"up: {ray} at {up.address}, cueline {up.version}"
    typer.echo(visible(there))
    if up is not None and not any(each.role == "dispatcher" for each in found.processes):
        typer.echo(f"it does not answer: {_AWAY}")
    if found.server is not None:
        typer.echo(f"log: {visible(found.server)}")
    if found.processes:
        _print_processes(found.processes)
    typer.echo(count(found.driven, "running session"))
    if left := found.undriven:
        were, them = ("was", "it") if left == 1 else ("were", "them")
        who = "`cueline resume`" if up else "`cueline up` or `cueline resume`"
        undriven = f"{left} more {were} left running, and nobody drives {them}"
        typer.echo(f"{undriven}: {who} goes on with {them}")


def _print_processes(processes: Sequence[ProcessRow]) -> None:
    rows = []
    for each in processes:
        sessions = str(each.sessions) if each.role in {"host", "inline"} else ""
        beat = f"{each.beat_seconds:.0f} s ago"
        rows.append((each.incarnation, str(each.pid), each.machine[:12], beat, sessions))
    print_table(("process", "pid", "machine", "beat", "running"), rows)
