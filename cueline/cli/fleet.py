"""`cueline fleet` and `scale`: show the hosts and runners of a log, and change their number."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cueline.cli import open_log
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, amounts_of, labels_of
from cueline.client.fleet import Count, GroupRow, ScaleReceipt
from cueline.client.status import FleetStatus
from cueline.console.table import print_table
from cueline.console.text import count, visible
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl

_SIZES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def scale(
    *,
    hosts: Annotated[
        str | None, typer.Option(metavar="N", help="Processes that run sessions, as 2 or 1..4.")
    ] = None,
    runners: Annotated[
        str | None, typer.Option(metavar="N", help="Processes that run tools, as 8 or 0..8.")
    ] = None,
    per_node: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most N of them on one node.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="KEY=VALUE", help="Only on nodes with this label in Ray; repeatable."
        ),
    ] = None,
    cpus: Annotated[
        float | None, typer.Option(metavar="N", help="CPUs that each takes of its node.")
    ] = None,
    gpus: Annotated[float | None, typer.Option(metavar="N", help="GPUs that each takes.")] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory that each takes, as 500M or 4G.")
    ] = None,
    resource: Annotated[
        list[str] | None,
        typer.Option(
            "--resource",
            metavar="NAME=N",
            help="Another resource of Ray's that each takes; repeatable.",
        ),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Ask for another number of hosts or runners; `cueline up` starts and retires them.

    A number is exact, as 8, or a range, as 0..8: workers above the minimum start when
    work waits for them, and retire when they are idle. The number applies to workers
    with the same labels, resources and --per-node; 0 ends these.
    It is recorded, so it also applies to the next `cueline up`.

    \b
    Examples:
      cueline scale --runners 8 --hosts 2
      cueline scale --runners 0..4 --gpus 1 --label zone=b
    """
    if hosts is None and runners is None:
        raise typer.BadParameter("name a number: --hosts N, --runners N, or a range as 0..8")
    amounts = {"cpus": cpus, "gpus": gpus, "memory": None if memory is None else _bytes(memory)}
    resources = {name: amount for name, amount in amounts.items() if amount is not None}
    receipt = open_log.wish(
        log,
        lambda client: client.scale(
            hosts=None if hosts is None else count_of("--hosts", hosts),
            runners=None if runners is None else count_of("--runners", runners),
            per_node=per_node,
            labels=labels_of(label),
            resources=resources | amounts_of(resource),
        ),
    )
    open_log.print_answer(receipt, lambda made: _print_receipt(made, log), as_json=as_json)


def count_of(option: str, text: str) -> Count:
    """Return the number or range of *text*.

    Raises:
        ConfigError: *text* is neither a number nor a range.
    """
    least, dots, most = text.partition("..")
    if not (least.isdecimal() and (most.isdecimal() if dots else not most)):
        raise ConfigError(option, f"{text!r} is neither a number, as 8, nor a range, as 0..8")
    return (int(least), int(most)) if dots else int(least)


def group_text(group: GroupRow) -> str:
    """Return the workers of a group, in the form of its options."""
    words = [f"--label {key}={value}" for key, value in group.labels.items()]
    for name, amount in group.resources.items():
        if name == "memory":
            words.append(f"--memory {_size(amount)}")
        else:
            known = name in {"cpus", "gpus"}
            words.append(f"--{name} {amount:g}" if known else f"--resource {name}={amount:g}")
    if group.per_node is not None:
        words.append(f"--per-node {group.per_node}")
    return visible(" ".join(words))


def number_text(group: GroupRow) -> str:
    """Return the desired number of workers of a group."""
    least, most = group.least, group.most
    return str(most) if least == most else f"{least}..{most}"


def _print_receipt(receipt: ScaleReceipt, log: LogUrl) -> None:
    for group in receipt.groups:
        typer.echo(f"{group.kind}s: {number_text(group)} {group_text(group)}".rstrip())
    if not receipt.groups:
        typer.echo("no hosts and no runners")
    if not receipt.up:
        typer.echo(f"no `cueline up` is running for {visible(str(log))}: the next one starts them")
    elif not receipt.recorded:
        typer.echo("so many were wanted before")


def _size(number: float) -> str:
    for unit, size in reversed(_SIZES.items()):
        if number >= size and not number % size:
            return f"{number / size:g}{unit}"
    return f"{number:.0f}"


def _bytes(text: str) -> float:
    number, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in _SIZES else (text, "")
    try:
        return float(number) * _SIZES.get(unit, 1)
    except ValueError:
        raise ConfigError("--memory", f"{text!r} is no size, as 500M or 4G") from None


_NODE = 8
"""The number of shown characters of a Ray node's id."""
_MACHINE = 12


def fleet(*, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False) -> None:
    """Show the hosts and runners: desired numbers, existing workers, waiting work.

    A worker is pending while no node of the cluster can hold it; Ray's autoscaler
    sees this. `cueline scale` changes the desired numbers.

    \b
    Examples:
      cueline fleet
      cueline fleet --json
    """
    found = open_log.ask(log, lambda reader: reader.fleet())
    open_log.print_answer(found, _print_fleet, as_json=as_json)


def _print_fleet(found: FleetStatus) -> None:
    if not found.up:
        typer.echo("no `cueline up` is running for this log")
    groups = [
        (f"{e.kind}s", number_text(e), e.running, e.pending or "", group_text(e))
        for e in found.groups
    ]
    _print_rows(("group", "wanted", "running", "pending", "takes"), groups)
    nodes = [
        (e.node[:_NODE], e.machine[:_MACHINE], e.hosts, e.runners, "draining" * e.draining)
        for e in found.nodes
    ]
    _print_rows(("node", "machine", "hosts", "runners", "state"), nodes)
    loads = {"host": "session", "runner": "call"}
    workers = [
        (e.incarnation, e.status, e.node[:_NODE], e.pid, count(e.load, loads[e.kind]))
        for e in found.workers
    ]
    _print_rows(("worker", "status", "node", "pid", "load"), workers)
    for wait in found.waits:
        what = f"with {wait.demands}" if wait.demands else "of any kind"
        waits = "waits" if wait.sessions == 1 else "wait"
        typer.echo(f"{count(wait.sessions, 'session')} {waits} for a runner {what}")
    if found.undriven:
        waits = "waits" if found.undriven == 1 else "wait"
        typer.echo(f"{count(found.undriven, 'running session')} {waits} for a host")


def _print_rows(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        print_table(head, [tuple(map(str, row)) for row in rows])
