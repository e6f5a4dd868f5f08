"""The read model `fleet`: the hosts and runners of the log, also those that are gone."""

from dataclasses import dataclass
from typing import ClassVar

from cueline.events.fleet import HostJoined, HostLost, RunnerBack, RunnerRegistered, RunnerRemoved
from cueline.events.fleet import RunnerStale as Stale
from cueline.events.store import RecordedEvent
from cueline.projections.read_model import Names, Rows, new_row


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """One host or runner, from its start to its end."""

    TABLE: ClassVar[str] = "fleet"
    KEY: ClassVar[Names] = ("stream", "incarnation")
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    incarnation: str
    kind: str
    """`host` or `runner`."""
    name: str
    status: str
    """`live`, `stale` or `gone`."""
    reason: str
    machine: str
    node: str
    pid: int
    joined_us: int
    changed_us: int


def fold_worker(rows: Rows, recorded: RecordedEvent, fact: object) -> None:
    """Apply one event of the fleet."""
    at = recorded.recorded_us
    match fact:
        case HostJoined() | RunnerRegistered():
            named = {"machine": fact.machine, "node": fact.node, "pid": fact.pid}
            kind, name = fact.group.kind, getattr(fact, "runner", "")
            row = rows.find(recorded.stream, fact.incarnation) or rows.add(
                new_row(
                    WorkerRow, stream=recorded.stream, incarnation=fact.incarnation, joined_us=at
                )
            )
            row.update(kind=kind, name=name, status="live", reason="", changed_us=at, **named)
        case HostLost() | RunnerRemoved() | Stale() | RunnerBack():
            found = rows.find(recorded.stream, fact.incarnation)
            if found is not None:
                status = {Stale: "stale", RunnerBack: "live"}.get(type(fact), "gone")
                found.update(status=status, reason=getattr(fact, "reason", ""), changed_us=at)
