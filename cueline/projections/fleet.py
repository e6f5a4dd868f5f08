"""The read model `fleet`: the hosts and runners of the log, also those that are gone."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

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


_STATUS: Final = dict.fromkeys(("HostJoined", "RunnerRegistered", "RunnerBack"), "live") | {
    "RunnerStale": "stale",
    "HostLost": "gone",
    "RunnerRemoved": "gone",
}


def fold_worker(rows: Rows, recorded: RecordedEvent, fact: Any) -> None:
    """Apply one event of the fleet."""
    status, at = _STATUS.get(recorded.type), recorded.recorded_us
    if status is None or recorded.payload is None:
        return
    key = {"stream": recorded.stream, "incarnation": fact.incarnation}
    row = rows.find(*key.values())
    if hasattr(fact, "group"):
        row = row or rows.add(new_row(WorkerRow, **key, joined_us=at))
        row.update(machine=fact.machine, node=fact.node, pid=fact.pid)
        row.update(kind=fact.group.kind, name=getattr(fact, "runner", ""))
    if row is not None:
        row.update(status=status, reason=getattr(fact, "reason", ""), changed_us=at)
