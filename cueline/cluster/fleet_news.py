"""What changes in a fleet, and the facts that its dispatcher records of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cueline.cluster.worker import Worker
from cueline.deciders.fleet import group_of
from cueline.deciders.reconcile import Report
from cueline.events.fleet import (
    FleetReport,
    HostJoined,
    HostLost,
    NodeDraining,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    WorkersPending,
)
from cueline.events.store import Presence


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """A change of a worker that others have to know."""

    what: Literal["joined", "lost", "back", "gone"]
    """Lost: accepts nothing more. Back: accepts work again. Gone: it has ended."""
    member: Worker
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class NodeLeaves:
    """A node is being drained."""

    node: str


FleetNews = WorkerEvent | NodeLeaves | Report


def facts_of(news: FleetNews, epoch: int, now: datetime) -> Iterator[FleetReport]:
    """Return what is recorded of *news*."""
    match news:
        case NodeLeaves(node=node):
            yield NodeDraining(node=node, epoch=epoch, at=now)
        case Report(group=group, pending=count):
            yield WorkersPending(group=group_of(group), count=count, epoch=epoch, at=now)
        case WorkerEvent(what="joined", member=Worker(presence=Presence() as presence) as worker):
            joined = HostJoined if worker.role == "host" else RunnerRegistered
            yield joined(
                incarnation=worker.incarnation,
                group=group_of(worker.group),
                machine=presence.machine,
                node=worker.node,
                pid=presence.pid,
                epoch=epoch,
                at=now,
            )
        case WorkerEvent(what="back", member=worker):
            yield RunnerBack(incarnation=worker.incarnation, epoch=epoch, at=now)
        case WorkerEvent(what=what, member=worker, evidence=reason):
            gone = RunnerStale if what == "lost" else RunnerRemoved
            lost = HostLost if worker.role == "host" else gone
            yield lost(incarnation=worker.incarnation, reason=reason, epoch=epoch, at=now)
