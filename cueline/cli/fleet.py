"""`cueline fleet`: the hosts and runners of a log, and what waits for them."""

from collections.abc import Sequence

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.scale import group_text, number_text
from cueline.client.fleet_status import FleetStatus
from cueline.console.table import print_table
from cueline.console.text import count

_NODE = 8
"""Characters of the id of a Ray node that are shown."""
_MACHINE = 12


def fleet(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Show the hosts and runners: how many are wanted, which there are, what waits.

    A worker is pending while no node of the cluster can hold it; Ray's autoscaler
    sees that. `cueline scale` changes how many are wanted.

    \b
    Examples:
      cueline fleet
      cueline fleet --json
    """
    found = open_log.ask(log, lambda reader: reader.fleet())
    open_log.print_answer(found, _print, as_json=as_json)


def _print(found: FleetStatus) -> None:
    if not found.up:
        typer.echo("no `cueline up` is running for this log")
    groups = [
        (f"{e.kind}s", number_text(e), e.running, e.pending or "", group_text(e))
        for e in found.groups
    ]
    _print_table(("group", "wanted", "running", "pending", "takes"), groups)
    nodes = [
        (e.node[:_NODE], e.machine[:_MACHINE], e.hosts, e.runners, "draining" * e.draining)
        for e in found.nodes
    ]
    _print_table(("node", "machine", "hosts", "runners", "state"), nodes)
    loads = {"host": "session", "runner": "call"}
    workers = [
        (e.incarnation, e.status, e.node[:_NODE], e.pid, count(e.load, loads[e.kind]))
        for e in found.workers
    ]
    _print_table(("worker", "status", "node", "pid", "load"), workers)
    for wait in found.waits:
        what = f"with {wait.demands}" if wait.demands else "of any kind"
        waits = "waits" if wait.sessions == 1 else "wait"
        typer.echo(f"{count(wait.sessions, 'session')} {waits} for a runner {what}")
    if found.undriven:
        waits = "waits" if found.undriven == 1 else "wait"
        typer.echo(f"{count(found.undriven, 'running session')} {waits} for a host")


def _print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        print_table(head, [tuple(map(str, row)) for row in rows])
