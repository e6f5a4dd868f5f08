"""Wires the parts on Ray; `inline` does it in one process.

The arguments of actors are pickled: names and paths, never an open file.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import version
from typing import Any, Literal

from cueline.actors.approval_gate import ApprovalGate, GatePort
from cueline.actors.background_task import Trouble
from cueline.actors.cost_ledger import CostLedger, LedgerPort
from cueline.actors.host_dependencies import RunnerDirectory
from cueline.actors.presence import living, machine_name, presence_of
from cueline.actors.session_host import SessionHost
from cueline.actors.slot import Slots
from cueline.actors.stream_notifier import StreamNotifier
from cueline.actors.tool_port import ToolExecutor
from cueline.clock import SystemClock
from cueline.config.settings import Settings
from cueline.environment import user_name
from cueline.errors import ClusterError
from cueline.events.agent import AgentSpec
from cueline.events.journal import Journal
from cueline.events.log_url import LogUrl
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.events.store import EventStore, PresenceBoard
from cueline.host_wiring import KnownPlacement, ViewsIndex, collaborators
from cueline.secret import secret_names
from cueline.stores import MemoryPresence
from cueline.stores.backend import LogBackend, backend_of
from cueline.tools.executor import ProcessToolExecutor
from cueline.up_record import UpRecord, find_up
from cueline.wiring import OpenLog, open_log

ANSWER_SECONDS = 15.0
"""How long a dispatcher may take to restart."""
POLL_SECONDS = 0.05
_MANY_HOSTS = 64
ORPHAN_SECONDS = 10.0
"""After this time, what ends with a killed `cueline up` has ended."""


@dataclass(frozen=True, slots=True)
class LogActorFactory:
    """See `cluster.cluster_context.ActorFactory`."""

    url: LogUrl
    """The log's, absolute."""
    log_id: str
    machine: str | None
    """Where the log's writer has to run; None: anywhere."""
    grace_seconds: float
    idle_seconds: float
    removal_seconds: float
    slots: Slots
    """Of each runner; the hosts share them."""

    @property
    def writes_anywhere(self) -> bool:
        """See `cluster.cluster_context.ActorFactory`."""
        return self.machine is None

    def log(self) -> tuple[EventStore, PresenceBoard, str]:
        """See `cluster.cluster_context.ActorFactory`."""
        clock = SystemClock()
        backend = backend_of(self.url)
        store = backend.open(clock, must_exist=True)
        return store, backend.open_presence(clock), store.log_id

    def reader(self) -> EventStore | None:
        """See `cluster.cluster_context.ActorFactory`."""
        backend = backend_of(self.url)
        if not self._is_here(backend):
            return None
        return backend.open(SystemClock(), read_only=True)

    def journal(self, store: EventStore) -> Journal:
        """See `cluster.cluster_context.ActorFactory`."""
        return self._log(store).journal()

    def host(
        self,
        incarnation: str,
        *,
        store: EventStore,
        board: PresenceBoard,
        runners: RunnerDirectory,
        gate: GatePort,
        ledger: LedgerPort,
        on_trouble: Trouble,
    ) -> SessionHost:
        """See `cluster.cluster_context.ActorFactory`."""
        log = replace(self._log(store, board), slots=self.slots)
        parts = collaborators(log, runners, gate, ledger)
        return SessionHost(incarnation, parts, on_trouble=on_trouble)

    def gate(self, store: EventStore) -> ApprovalGate:
        """See `cluster.cluster_context.ActorFactory`."""
        return ApprovalGate(self.journal(store))

    def ledger(self, store: EventStore) -> CostLedger:
        """See `cluster.cluster_context.ActorFactory`."""
        return CostLedger(self.journal(store))

    def executor(self) -> ToolExecutor:
        """See `cluster.cluster_context.ActorFactory`."""
        # The hosts count, and each has one slot at least. A call that has started must not queue.
        return ProcessToolExecutor(max(self.slots.workers, _MANY_HOSTS))

    async def check_tools(self, agent: AgentSpec) -> dict[str, str]:
        """See `cluster.cluster_context.ActorFactory`."""
        tools = [tool for tool in agent.tools if tool.runs]
        executor = ProcessToolExecutor(1)  # a runner's own may be busy
        try:
            return await executor.check(tools, secret_names(agent), agent.environment)
        finally:
            await executor.close()

    def index(self, store: EventStore) -> ViewsIndex:
        """See `cluster.cluster_context.ActorFactory`."""
        return ViewsIndex(backend_of(self.url).open_views(), store)

    def _log(self, store: EventStore, board: PresenceBoard | None = None) -> OpenLog:
        clock = SystemClock()
        backend = backend_of(self.url)
        return OpenLog(
            backend=backend,
            store=store,
            notifier=StreamNotifier(store),
            board=board or MemoryPresence(clock),
            clock=clock,
            grace_seconds=self.grace_seconds,
            idle_seconds=self.idle_seconds,
            removal_seconds=self.removal_seconds,
            # Elsewhere a resume takes longer.
            snapshots=backend.open_snapshots() if self._is_here(backend) else NO_SNAPSHOTS,
        )

    def _is_here(self, backend: LogBackend) -> bool:
        return self.machine in (None, machine_name()) and backend.exists()


@asynccontextmanager
async def on_ray(
    log: OpenLog, *, scope: Collection[str], address: str | None = None, on_trouble: Trouble
) -> AsyncIterator[KnownPlacement]:
    """Drive the sessions of *scope* on a Ray cluster.

    Raises:
        ClusterError: the cluster cannot be used; the message says what to do.
        LogUnavailableError: the log cannot be used there.
    """
    record = find_up(log.url)
    if record is not None:
        yield await attach_to_up(log, record, address)
        return
    # First: Ray reads the environment on import.
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see above

    parts = actor_factory_of(log)
    namespace = namespace_of(parts.log_id)
    # An empty variable counts as not set.
    with connect_ray(address or os.environ.get("RAY_ADDRESS") or None, namespace) as connection:
        from cueline.cluster.command import command  # noqa: PLC0415 - it imports Ray

        async with command(
            connection,
            namespace,
            parts,
            store=log.store,
            board=log.board,
            scope=scope,
            on_trouble=on_trouble,
            hosts=1,
            runners=1,
        ) as there:
            yield there


class AttachedRuntime:
    """A running `cueline up`. It notices new inbox messages by itself."""

    is_dedicated = False

    def __init__(self, record: UpRecord) -> None:
        self._record = record

    async def check_tools(self, agent: AgentSpec) -> None:
        """See `wiring.KnownPlacement`: RAY_ADDRESS says that it is the cluster of this process."""
        if not agent.tools or os.environ.get("RAY_ADDRESS") != self._record.address:
            return
        from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see `on_ray`

        with connect_ray(self._record.address, self._record.namespace):
            from cueline.cluster.dispatcher import OWNER  # noqa: PLC0415 - it imports Ray
            from cueline.cluster.node_check import check_tools, runners_in  # noqa: PLC0415 - as above

            runners = runners_in(self._record.namespace, OWNER)
            await check_tools(runners, agent)

    async def place(self, streams: Collection[str]) -> None:
        """See `wiring.Place`."""

    @property
    def live_text(self) -> None:
        """See `wiring.KnownPlacement`: its hosts are elsewhere."""

    def has(self, incarnation: str | None) -> bool:  # noqa: ARG002 - all hosts are its own
        """See `wiring.KnownPlacement`."""
        return False

    def settled(self, stream: str) -> None:
        """See `wiring.KnownPlacement`: its hosts are elsewhere."""


async def attach_to_up(log: OpenLog, record: UpRecord, address: str | None) -> AttachedRuntime:
    """Return the `cueline up` of *record*, if its dispatcher answers.

    Raises:
        ClusterError: it does not answer, or another cluster was named.
    """
    if address not in (None, "auto", record.address):
        reason = (
            f"this log is driven by `cueline up` at {record.address}: name that, or take it down"
        )
        raise ClusterError(str(address), reason)
    until = log.clock.now() + timedelta(seconds=ANSWER_SECONDS)
    while log.clock.now() < until:
        if await dispatcher_lives(log):
            return AttachedRuntime(record)
        await log.clock.sleep(POLL_SECONDS)
    again = "`cueline up` starts it again, " if record.kept_by == "ray" else ""
    reason = f"{record.keeper_text} does not answer: {again}`cueline down` ends it"
    raise ClusterError(record.address, reason)


def namespace_of(log_id: str) -> str:
    """Return the Ray namespace of a log."""
    return f"cueline-{log_id}"


def actor_factory_of(log: OpenLog) -> LogActorFactory:
    """Return the factory of the actors of *log*.

    Raises:
        LogUnavailableError: no other process can write to it.
    """
    log.backend.check(shared=True)
    machine = machine_name() if log.backend.writer_place == "machine" else None
    return LogActorFactory(
        log.url.absolute(),
        log.id,
        machine,
        log.grace_seconds,
        log.idle_seconds,
        log.removal_seconds,
        log.slots,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpPlan:
    """What `cueline up` has to start, and where."""

    log: LogUrl
    address: str | None
    """Of a Ray cluster; None: a new one on this machine."""
    hosts: int | None
    """None: as was asked for last, at first 1; likewise for runners."""
    runners: int | None
    recover: bool
    """See `UpRecord`."""
    settings: Settings


@asynccontextmanager
async def run_up(plan: UpPlan) -> AsyncIterator["UpProcess"]:
    """Run a log's actors until the block ends, then take them down.

    Raises:
        ClusterError: the cluster cannot be used, or another `cueline up` has the log; the
            message says what to do.
        LogUnavailableError: the log cannot be used here or there.
    """
    async with _starting(plan, "process") as up:
        try:
            found = await up.start()
            try:
                yield UpProcess(up.record, found, up.actors.watch, up.log.store.last_position)
            finally:
                with suppress(OSError):  # its folder may be gone
                    up.note(ready=False)
        finally:
            await up.end()


async def start_up(plan: UpPlan) -> tuple[UpRecord, int]:
    """Start a log's actors on a cluster, and leave them to Ray, which restarts them.

    Returns where they are, and the number of running sessions that nobody drove.

    Raises:
        ClusterError: as `run_up`.
        LogUnavailableError: as `run_up`.
    """
    async with _starting(plan, "ray") as up:
        try:
            found = await up.start()
        except BaseException:
            await up.end()
            raise
    return up.record, found


@asynccontextmanager
async def _starting(
    plan: UpPlan, kept_by: Literal["process", "ray"]
) -> AsyncIterator["_StartingUp"]:
    """Open the log and connect to Ray."""
    # First: Ray reads the environment on import.
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see above

    async with open_log(plan.log) as log:
        parts = actor_factory_of(log.with_settings(plan.settings))
        namespace = namespace_of(parts.log_id)
        with connect_ray(plan.address, namespace) as connection:
            from cueline.cluster.dispatcher import DispatcherSettings  # noqa: PLC0415 - it imports Ray
            from cueline.cluster.up import Up  # noqa: PLC0415 - as above

            record = record_of(log, connection.address)
            record = replace(record, kept_by=kept_by, recover=plan.recover)
            wanted = DispatcherSettings(
                hosts=plan.hosts,
                runners=plan.runners,
                by=user_name(),
                recover=plan.recover,
                stays=kept_by == "ray",
            )
            actors = Up(connection, namespace, parts, record.keeper)
            yield _StartingUp(log, record, actors, wanted)


@dataclass(frozen=True, slots=True)
class _StartingUp:
    """An `up` of this process, and its record."""

    log: OpenLog
    record: UpRecord
    actors: Any
    """`cluster.up.Up`, which imports Ray."""
    wanted: Any
    """Its `DispatcherSettings`."""

    async def start(self) -> int:
        """Start the actors, record where they are, and return how many sessions nobody drove."""
        # From now on there are actors to take down, even if we are killed. The same holds for
        # those of an earlier record.
        if UpRecord.read(self.log.url) is None:
            self.note(ready=False)
        started = await self.actors.start(self.wanted)
        self.note(ready=True)
        return int(started.found)

    def note(self, *, ready: bool) -> None:
        """Record whether they accept sessions."""
        replace(self.record, ready=ready).write(self.log.url)

    async def end(self) -> None:
        """Take the actors down."""
        await self.actors.stop()
        self.record.withdraw(self.log.url)


@dataclass(frozen=True, slots=True)
class UpProcess:
    """What `cueline up` keeps running."""

    record: UpRecord
    found: int
    """The number of running sessions that nobody drove."""
    watch: Callable[[], Awaitable[list[str]]]
    """Returns the errors since the last call; raises `ClusterError` at the end."""
    look: Callable[[], Awaitable[int]]
    """Checks the log; raises `LogLostError` if its file is gone."""


async def count_nodes(address: str) -> int:
    """Return how many nodes the cluster at *address* has, each with this version of cueline.

    Raises:
        ClusterError: it cannot be joined, or some have another version; the message says which.
    """
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - see `on_ray`

    with connect_ray(address, "cueline"):
        from cueline.cluster.node_check import check_nodes  # noqa: PLC0415 - it imports Ray

        return await check_nodes(address)


def record_of(log: OpenLog, address: str) -> UpRecord:
    """Return the record of an `up` that this process has on the cluster at *address*."""
    return UpRecord(
        address=address,
        namespace=namespace_of(log.id),
        version=version("cueline"),
        keeper=presence_of("up"),
        kept_by="ray",
    )


async def end_left_behind(
    log: OpenLog, record: UpRecord, *, address: str | None = None, grace_seconds: float
) -> None:
    """Take down what a killed `cueline up` left on a shared cluster, or what Ray keeps there.

    The cluster is at *address*, or else where *record* says.

    Raises:
        ClusterError: some of it lives, and the cluster cannot be reached.
    """
    deadline = log.clock.now() + timedelta(seconds=ORPHAN_SECONDS)
    asked = record.kept_by == "ray" or address is not None
    while asked or await dispatcher_lives(log):
        try:
            await _take_down(address or record.address, record.namespace, grace_seconds)
        except ClusterError:
            # A cluster of its own ends with it.
            if not await dispatcher_lives(log):
                if address is None:
                    return
                raise
            if log.clock.now() > deadline:
                raise
            await log.clock.sleep(POLL_SECONDS)
        else:
            return


async def dispatcher_lives(log: OpenLog) -> bool:
    """Whether the log has a living dispatcher."""
    return any(each.role == "dispatcher" for each in await living(log.board, log.clock.now()))


async def _take_down(address: str, namespace: str, grace_seconds: float) -> None:
    from cueline.cluster.connection import connect_ray  # noqa: PLC0415 - as above

    with connect_ray(address, namespace):
        from cueline.cluster.dispatcher import take_down  # noqa: PLC0415 - it imports Ray

        await take_down(namespace, grace_seconds)
