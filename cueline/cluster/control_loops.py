"""Runs a dispatcher on a cluster: loops that assign sessions, follow the log, and scale."""

import asyncio
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from time import monotonic

from cueline.actors.background_task import Trouble, start_loops
from cueline.actors.dispatcher import TICK_SECONDS, Dispatcher
from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.figures import waiting_calls
from cueline.cluster.fleet_member import FleetMember, FleetNews, WorkerEvent
from cueline.cluster.fleet_supervisor import FleetSupervisor
from cueline.cluster.singletons import RemoteSandboxes
from cueline.deciders.fleet import Group, Range
from cueline.deciders.reconcile import Report, takes
from cueline.errors import ClusterError, HostsFullError
from cueline.events.agent_parts import Demands
from cueline.events.store import EventStore, PresenceBoard

UNREACHED_SECONDS = 15.0
"""Interval of retries for sessions that wait for a runner, because a host may have missed one."""


class ControlLoops:
    """A dispatcher with its fleet; its loops never end by themselves."""

    def __init__(
        self,
        context: ClusterContext,
        store: EventStore,
        board: PresenceBoard,
        *,
        epoch: int = 0,
        scope: Container[str] | None,
        on_trouble: Trouble,
        on_news: Callable[[FleetNews], None] | None = None,
    ) -> None:
        self._clock = SystemClock()
        self._context, self._store = context, store
        self._on_trouble = on_trouble
        self._on_news = on_news
        self._look_now = asyncio.Event()
        self._may_go_on = False
        """Whether sessions that wait for a runner have to be retried."""
        self._tried_at = monotonic()
        self._pending: set[Group] = set()
        """The groups with workers that wait for a node, as reported."""
        self._is_full = False
        """Whether sessions wait for a place in a host."""
        self._tasks: list[asyncio.Task[None]] = []
        self.fleet = FleetSupervisor(
            context, board, epoch=epoch, on_trouble=on_trouble, on_news=self._hear_of
        )
        self._scope = scope
        self.index = context.factory.index(store)
        self._dispatcher = Dispatcher(
            store=store,
            index=self.index,
            fleet=self.fleet,
            board=board,
            clock=self._clock,
            scope=scope,
        )

    async def start(
        self, wanted: Mapping[Group, Range], adopted: Sequence[FleetMember] = ()
    ) -> None:
        """Start the fleet, and look for work.

        Raises:
            ClusterError: no actor starts; the message says why.
        """
        await self.fleet.start(wanted, adopted)
        if (await self._store.head(SLOTS_STREAM)).version:
            await RemoteSandboxes(self._context).watch()
        steps = {
            "following the log": self._dispatcher.follow,
            "looking for work": self._look,  # after following: see `inline`
            "watching the fleet": self._watch,
        }
        self._tasks = start_loops(steps, clock=self._clock, on_trouble=self._on_trouble)

    async def place(self, streams: Collection[str]) -> None:
        """Assign sessions to hosts; active ones read their inbox."""
        await self._dispatcher.place(streams)

    def look_again(self) -> None:
        """Let the sessions that wait for a runner try again now."""
        self._may_go_on = True
        self._look_now.set()

    async def drain(self, seconds: float) -> None:
        """Stop assigning sessions, and drain the hosts within *seconds*."""
        await self.stop()
        await self.fleet.drain(seconds)

    async def close(self) -> None:
        """Stop the fleet."""
        await self.stop()
        self.index.close()
        await self.fleet.close()

    async def stop(self) -> None:
        """Stop assigning sessions; the fleet continues."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear_of(self, news: FleetNews) -> None:
        if isinstance(news, WorkerEvent):
            # Sessions of a lost host, or waiting for this runner, need not wait for the next look.
            self._look_now.set()
            if news.what not in {"lost", "leaves"} or news.member.role == "host":
                # Also after the loss of a host: a request to retry may have been lost with it.
                self._may_go_on = True
        if isinstance(news, Report):
            self._tell_pending(news)
        if self._on_news is not None:
            self._on_news(news)

    def _tell_pending(self, report: Report) -> None:
        """Report once which workers wait for a node, until none of them waits."""
        if not report.pending:
            self._pending.discard(report.group)
        elif report.group not in self._pending:
            self._pending.add(report.group)
            self._on_trouble("the fleet", ClusterError("the fleet", pending_text(report)))

    async def _look(self) -> None:
        full: HostsFullError | None = None
        try:
            await self._dispatcher.tick()
        except HostsFullError as error:
            full = error
        self._is_full = full is not None
        if self._may_go_on or monotonic() - self._tried_at > UNREACHED_SECONDS:
            await self._try_again()
        if full is not None:
            raise full
        try:
            async with asyncio.timeout(TICK_SECONDS):
                await self._look_now.wait()
        except TimeoutError:
            pass
        self._look_now.clear()

    async def _try_again(self) -> None:
        # A runner that has come may take a call that the cause of a wait does not name.
        offers = None if self._may_go_on else self.fleet.offers()
        self._may_go_on = False
        self._tried_at = monotonic()
        try:
            self.fleet.remind()
            await self._dispatcher.wake("runner", offers)
        except Exception:
            self._may_go_on = True
            raise

    async def _watch(self) -> None:
        await self.fleet.look()
        await self.fleet.look_at_nodes()
        loads = self._dispatcher.loads()
        unmet = await self._dispatcher.unmet()
        waiting_calls().set(sum(each.calls for each in unmet))
        self.fleet.need(unmet, loads, is_full=self._is_full)
        await self._clock.sleep(TICK_SECONDS)


def pending_text(report: Report) -> str:
    """Return the waiting workers, and the resources for which they wait."""
    group, number = report.group, report.pending
    workers = f"1 {group.kind} waits" if number == 1 else f"{number} {group.kind}s wait"
    needs = Demands(labels=dict(group.labels), resources=takes(group))
    limit = "" if group.per_node is None else f", and less than {group.per_node} of them on it"
    return f"{workers} for a node with {needs}{limit}; `cueline fleet` shows it"
