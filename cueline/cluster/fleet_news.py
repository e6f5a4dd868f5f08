"""The changes in a fleet, and the facts that its dispatcher records about them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from cueline.actors.runner_registry import RUNNER
from cueline.cluster.worker import Worker
from cueline.deciders.fleet import group_of
from cueline.deciders.reconcile import Report
from cueline.events.fleet import (
    FleetReport,
    HostJoined,
    HostLost,
    NodeDraining,
    RunnerRegistered,
    RunnerRemoved,
    WorkersPending,
)
from cueline.events.store import Presence


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """A change of a worker, of which hosts or the log have to be informed."""

    what: Literal["joined", "lost", "back", "leaves", "gone"]
    """Lost: accepts no more work. Back: accepts work again. Leaves: a runner finishes its calls.

    Gone: the worker has ended.
    """
    member: Worker
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class NodeLeaves:
    """A node is being drained."""

    node: str


FleetNews = WorkerEvent | NodeLeaves | Report


def facts_of(news: FleetNews, epoch: int, now: datetime) -> Iterator[FleetReport]:
    """Return the facts to record about *news*."""
    match news:
        case NodeLeaves(node=node):
            yield NodeDraining(node=node, epoch=epoch, at=now)
        case Report(group=group, pending=count):
            yield WorkersPending(group=group_of(group), count=count, epoch=epoch, at=now)
        case WorkerEvent(
            what="joined" | "leaves", member=Worker(presence=Presence() as presence) as worker
        ):
            said: dict[str, Any] = {
                "incarnation": worker.incarnation,
                "group": group_of(worker.group),
                "machine": presence.machine,
                "node": worker.node,
                "pid": presence.pid,
                "epoch": epoch,
                "at": now,
            }
            # One that leaves offers no blueprints any more.
            runner = "" if worker.leaves else RUNNER
            is_host = worker.role == "host"
            yield HostJoined(**said) if is_host else RunnerRegistered(runner=runner, **said)
        case WorkerEvent(member=Worker(role="host") as worker, evidence=reason):
            yield HostLost(incarnation=worker.incarnation, reason=reason, epoch=epoch, at=now)
        case WorkerEvent(what="gone", member=worker, evidence=reason):
            yield RunnerRemoved(
                incarnation=worker.incarnation,
                reason=reason,
                graceful=bool(worker.leaves),
                epoch=epoch,
                at=now,
            )
        case WorkerEvent():
            pass  # a runner that is silent is registered until its heartbeats are missed
