"""Runs the actors of one command, which start and end with it."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from uuid import uuid4

import ray

from cueline.actors.background_task import Trouble, background_task, shielded
from cueline.actors.dispatcher import TICK_SECONDS
from cueline.actors.presence import machine_name
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.connection import RayConnection
from cueline.cluster.control_loops import ControlLoops
from cueline.cluster.fleet_member import FleetMember
from cueline.cluster.log_writer import open_log, start_writer
from cueline.cluster.node_check import check_nodes, check_tools
from cueline.cluster.ray_call import Handle
from cueline.cluster.runner_directory import living_nodes
from cueline.deciders.fleet import HOSTS, RUNNERS, Range
from cueline.errors import ClusterError
from cueline.events.agent import AgentSpec
from cueline.events.store import EventStore, PresenceBoard
from cueline.runtime.actor_factory import ActorFactory
from cueline.runtime.place import CheckedTools, Place


class Command(Place):
    """Drives the sessions of one command with its own actors."""

    drives = True

    def __init__(
        self,
        context: ClusterContext,
        store: EventStore,
        board: PresenceBoard,
        *,
        scope: set[str],
        on_trouble: Trouble,
    ) -> None:
        super().__init__(context.factory.url, scope, on_trouble)
        self.loops = ControlLoops(context, store, board, scope=scope, on_trouble=self.hear)
        self._checked = CheckedTools()

    async def place(self, streams: Collection[str]) -> None:
        await self.loops.place(streams)

    def has(self, incarnation: str | None) -> bool:
        return any(m.role == "host" and m.incarnation == incarnation for m in self.members())

    async def check_tools(self, agents: Sequence[AgentSpec]) -> None:
        runners = {m.incarnation: m.handle for m in self.members() if m.role == "runner"}
        ask = partial(check_tools, list(runners.values()))
        await self._checked.check(agents, runners, ask)

    def members(self) -> Sequence[FleetMember]:
        """Return the hosts and runners of the command."""
        return self.loops.fleet.members()


@asynccontextmanager
async def command(
    connection: RayConnection,
    namespace: str,
    factory: ActorFactory,
    *,
    store: EventStore,
    board: PresenceBoard,
    scope: set[str],
    on_trouble: Trouble,
    hosts: int,
    runners: int,
) -> AsyncIterator[Command]:
    """Keep actors that run the sessions of *scope*, which may grow, until the block ends.

    Raises:
        ClusterError: they do not start; the message says why.
        LogUnavailableError: the cluster cannot open the log.
    """
    context = ClusterContext(
        namespace=namespace,
        node=connection.node,
        address=connection.node_address,
        machine=machine_name(),
        owner=f"command-{uuid4().hex[:12]}",
        detached=False,
        factory=factory,
    )
    if not connection.ours:
        await check_nodes(connection.address)
    here = Command(context, store, board, scope=scope, on_trouble=on_trouble)
    writer: Handle = None
    try:
        # Concurrently: each is a process that has to start.
        starting = asyncio.create_task(
            here.loops.start({HOSTS: Range(hosts, hosts), RUNNERS: Range(runners, runners)})
        )
        try:
            writer = await start_writer(context)
            await open_log(context, writer)
            await starting
        finally:
            starting.cancel()
        with background_task(_watch_ray(context, scope, here.hear)):
            yield here
        await here.loops.drain(0.0)
    finally:
        await shielded(here.loops.close())
        if writer is not None:
            ray.kill(writer)  # nothing here needs the log any more


async def _watch_ray(context: ClusterContext, scope: Collection[str], on_trouble: Trouble) -> None:
    """Report to all waiters of *scope* that Ray has ended here, so that no actor can start."""
    clock, lives = SystemClock(), True
    while True:
        with suppress(Exception):  # unknown while its head is away
            lives = context.node in await living_nodes()
        for stream in () if lives else tuple(scope):
            on_trouble(stream, ClusterError("Ray", "it has ended on this machine"))
        await clock.sleep(TICK_SECONDS)
