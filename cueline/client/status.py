"""Returns the living processes of a log, and how many of its running sessions have a driver."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, cast

from cueline.actors.presence import living, silent_seconds
from cueline.actors.session_owner import owners_of
from cueline.client.fleet import GroupRow, rows_of
from cueline.client.open_read_models import Notice, print_notice, read_models
from cueline.deciders.fleet import FLEET, Group, key_of
from cueline.errors import CorruptEventError
from cueline.events.agent_parts import Demands
from cueline.events.codec import not_redacted
from cueline.events.fleet import (
    FLEET_STREAM,
    FleetEvent,
    FleetTaken,
    HostJoined,
    HostLost,
    NodeDraining,
    RunnerBack,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    WorkerGroup,
    WorkerKind,
    WorkersPending,
)
from cueline.projections.effect import started_calls
from cueline.projections.session import causes, running
from cueline.runtime.open_log import OpenLog
from cueline.runtime.up_record import UpRecord, find_up


@dataclass(frozen=True, slots=True)
class UpRow:
    """The running `cueline up` of a log."""

    pid: int | None
    """The pid of the process that keeps it; None: Ray keeps it."""
    address: str
    """The address of its Ray."""
    namespace: str
    version: str
    """The version of its cueline."""


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One living process of a log."""

    role: str
    incarnation: str
    machine: str
    pid: int
    beat_seconds: float
    """The time since its last heartbeat, in seconds."""
    sessions: int
    """The number of running sessions that it drives."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """The living processes of a log, and how many of its running sessions have a driver."""

    up: UpRow | None
    processes: tuple[ProcessRow, ...]
    driven: int
    undriven: int
    """The running sessions without a driver."""
    server: str | None = None
    """The server of the log, and the rights of this role there; None for a file."""
    damage: CorruptEventError | None = None
    """The unreadable event; later sessions are not counted."""


async def status_of(log: OpenLog, *, notice: Notice = print_notice) -> LogStatus:
    """Return the living processes of a log, and how many running sessions have a driver.

    Raises:
        LogUnavailableError: the log cannot be read.
    """
    log.check_whole()
    now = log.clock.now()
    present = await living(log.board, now)
    async with read_models(log, notice) as models:
        streams, damage = running(models.db), models.damage
    owners = await owners_of(log.store, log.board, streams, now)
    drives = Counter(owner.incarnation for owner in owners.values())
    processes = tuple(
        ProcessRow(
            each.role,
            each.incarnation,
            each.machine,
            each.pid,
            silent_seconds(each, now),
            drives[each.incarnation],
        )
        for each in present
    )
    record = find_up(log.url)
    up = None if record is None else row_of(record)
    undriven = len(streams) - len(owners)
    return LogStatus(up, processes, len(owners), undriven, log.backend.describe(), damage)


def running_up(log: OpenLog) -> UpRecord | None:
    """Return the record of the running `cueline up`, without the secrets of its processes."""
    record = find_up(log.url)
    if record is None:
        return None
    return replace(record, keeper=replace(record.keeper, address="", token=""))


def row_of(up: UpRecord) -> UpRow:
    """Return the row of a running `cueline up`."""
    pid = up.keeper.pid if up.kept_by == "process" else None
    return UpRow(pid, up.address, up.namespace, up.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus(GroupRow):
    """A group of equal workers: the desired number, and the existing number."""

    running: int
    pending: int
    """The number of further workers that wait for a node that can hold them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A host or runner."""

    incarnation: str
    kind: WorkerKind
    status: Literal["online", "stale"]
    """The status; `stale`: a silent runner that may still finish its calls."""
    node: str
    """Its Ray node."""
    machine: str
    pid: int
    load: int
    """The running sessions of a host, or the running calls of a runner."""
    labels: Mapping[str, str]
    resources: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A Ray node with workers."""

    node: str
    machine: str
    hosts: int
    runners: int
    draining: bool
    """Whether the node is about to leave the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """Sessions that wait for a runner with the same demands."""

    sessions: int
    demands: Demands
    """The demands of their calls; empty: any runner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """The fleet of a log."""

    up: bool
    """Whether a `cueline up` is running."""
    groups: tuple[GroupStatus, ...]
    nodes: tuple[NodeRow, ...]
    workers: tuple[WorkerRow, ...]
    waits: tuple[WaitRow, ...]
    undriven: int
    """The running sessions without a driver."""


class _Recorded:
    """The recorded workers and nodes of the current dispatcher."""

    def __init__(self) -> None:
        self.state = FLEET.initial_state
        self.joined: dict[str, HostJoined | RunnerRegistered] = {}
        self.stale: set[str] = set()
        self.draining: set[str] = set()
        self.pending: dict[Group, int] = {}

    def take(self, fact: FleetEvent) -> None:
        self.state = FLEET.evolve(self.state, fact)
        match fact:
            case FleetTaken():
                for kept in (self.joined, self.stale, self.draining, self.pending):
                    kept.clear()
            case HostJoined() | RunnerRegistered():
                self.joined[fact.incarnation] = fact
            case RunnerStale():
                self.stale.add(fact.incarnation)
            case RunnerBack():
                self.stale.discard(fact.incarnation)
            case HostLost() | RunnerRemoved():
                self.joined.pop(fact.incarnation, None)
            case NodeDraining():
                self.draining.add(fact.node)
            case WorkersPending():
                self.pending[key_of(fact.group)] = fact.count
            case _:
                pass


async def fleet_of(log: OpenLog, *, notice: Notice = print_notice) -> FleetStatus:
    """Return the fleet of a log.

    Raises:
        LogUnavailableError: the log cannot be read.
    """
    log.check_whole()
    recorded = _Recorded()
    async for event, fact in log.journal().read(FLEET_STREAM):
        recorded.take(cast("FleetEvent", not_redacted(event, fact)))
    status = await status_of(log, notice=notice)
    async with read_models(log, notice) as models:
        load = started_calls(models.db)
        waits = [(cause, count) for cause, count in causes(models.db, "runner") if cause.is_unmet]
    load |= {each.incarnation: each.sessions for each in status.processes if each.role == "host"}
    living = {each.incarnation for each in status.processes}
    up = any(each.role == "dispatcher" for each in status.processes)
    # Without a dispatcher, the ends of runners are not recorded.
    known = {each.incarnation for each in await log.board.all() if each.role == "runner"}
    there = living | known if up else living
    workers = [
        _worker(fact, recorded.stale | known - living, load)
        for name, fact in recorded.joined.items()
        if name in there
    ]
    groups = Counter(
        key_of(recorded.joined[each.incarnation].group)
        for each in workers
        if each.status == "online"
    )
    wanted = rows_of(recorded.state.wanted)
    return FleetStatus(
        up=up,
        groups=tuple(_group(row, groups, recorded.pending if up else {}) for row in wanted),
        nodes=_nodes(workers, recorded.draining),
        workers=tuple(workers),
        waits=tuple(WaitRow(sessions=count, demands=cause.demands) for cause, count in waits),
        undriven=status.undriven,
    )


def _group(
    row: GroupRow, running: Mapping[Group, int], pending: Mapping[Group, int]
) -> GroupStatus:
    fields = asdict(row)
    names = ("kind", "labels", "resources", "per_node")
    key = key_of(WorkerGroup(**{name: fields[name] for name in names}))
    return GroupStatus(**fields, running=running.get(key, 0), pending=pending.get(key, 0))


def _worker(
    fact: HostJoined | RunnerRegistered, stale: set[str], load: Mapping[str, int]
) -> WorkerRow:
    return WorkerRow(
        incarnation=fact.incarnation,
        kind=fact.group.kind,
        status="stale" if fact.incarnation in stale else "online",
        node=fact.node,
        machine=fact.machine,
        pid=fact.pid,
        load=load.get(fact.incarnation, 0),
        labels=fact.group.labels,
        resources=fact.group.resources,
    )


def _nodes(workers: list[WorkerRow], draining: set[str]) -> tuple[NodeRow, ...]:
    machines = {each.node: each.machine for each in workers}
    count = Counter((each.node, each.kind) for each in workers)
    return tuple(
        NodeRow(
            node=node,
            machine=machine,
            hosts=count[node, "host"],
            runners=count[node, "runner"],
            draining=node in draining,
        )
        for node, machine in sorted(machines.items())
    )
