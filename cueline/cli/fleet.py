"""`cueline fleet`: the hosts and runners of a log, and what waits for them."""

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
        (
            f"{each.kind}s",
            number_text(each),
            str(each.running),
            str(each.pending or ""),
            group_text(each),
        )
        for each in found.groups
    ]
    if groups:
        print_table(("group", "wanted", "running", "pending", "takes"), groups)
    nodes = [
        (
            each.node[:_NODE],
            each.machine[:_MACHINE],
            str(each.hosts),
            str(each.runners),
            "draining" if each.draining else "",
        )
        for each in found.nodes
    ]
    if nodes:
        print_table(("node", "machine", "hosts", "runners", "state"), nodes)
    workers = [
        (
            each.incarnation,
            each.status,
            each.node[:_NODE],
            str(each.pid),
            count(each.load, "session" if each.kind == "host" else "call"),
        )
        for each in found.workers
    ]
    if workers:
        print_table(("worker", "status", "node", "pid", "load"), workers)
    for wait in found.waits:
        what = f"with {wait.demands}" if wait.demands else "of any kind"
        waits = "waits" if wait.sessions == 1 else "wait"
        typer.echo(f"{count(wait.sessions, 'session')} {waits} for a runner {what}")
    if found.undriven:
        waits = "waits" if found.undriven == 1 else "wait"
        typer.echo(f"{count(found.undriven, 'running session')} {waits} for a host")
