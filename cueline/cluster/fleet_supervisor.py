"""Starts, watches, replaces and retires the hosts and runners of one dispatcher."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import death_of
from cueline.actors.session_host import HostPort
from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, call
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.placement import cluster_nodes, node_of, placement
from cueline.cluster.runner import RunnerActor
from cueline.cluster.runner_directory import RunnerInfo, leaving_nodes
from cueline.cluster.session_host import RemoteHost, SessionHostActor
from cueline.cluster.worker import CALL_SECONDS, FleetNews, NodeLeaves, Worker, WorkerEvent, attempt
from cueline.deciders.fleet import Group, Range
from cueline.deciders.matching import Offer, Unmet
from cueline.deciders.reconcile import Observed, Report, Retire, Start, decide, needed
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import Presence, PresenceBoard

_REMEMBERED = 1000
_SPARE_SECONDS = 3.0
"""The time after which a host gets a spare; a shorter command needs none."""


class FleetSupervisor:
    """Starts and ends hosts and runners to match the desired numbers; see `HostDirectory`."""

    def __init__(
        self,
        context: ClusterContext,
        board: PresenceBoard,
        *,
        epoch: int,
        on_trouble: Trouble,
        on_news: Callable[[FleetNews], None],
    ) -> None:
        self.context = context
        self._board = board
        self._epoch = epoch
        self._on_trouble = on_trouble
        self._on_news = on_news
        self._wanted: Mapping[Group, Range] = {}
        self._needed: Mapping[Group, int] = {}
        """The number of further workers that waiting work could use."""
        self._observed = Observed()
        self._nodes: set[str] = set()
        """The nodes that take workers."""
        self._leaving: set[str] = set()
        self._members: dict[str, Worker] = {}
        self._hosts: dict[str, HostPort] = {}
        """The started members; another mapping after each change."""
        self._gone: dict[str, str] = {}
        self._unreachable: list[Worker] = []
        """The lost workers that may be alive: a frozen runner may finish its calls."""
        self._spare: Worker | None = None
        """The spare: a host actor that is not started, for the next host."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self, wanted: Mapping[Group, Range], adopted: Sequence[Worker] = ()) -> None:
        """Start the *wanted* workers missing from *adopted*.

        Wait until a host is ready, or waits for a node. Silent workers count as lost.

        Raises:
            ClusterError: no host starts.
        """
        for member in adopted:
            if member.silent.is_set():
                self._unreachable.append(member)
            else:
                self._look_after(member)
        with suppress(Exception):  # while Ray's head is away: the next look does it
            await self.look_at_nodes()
        hosts = sum(count.least for group, count in wanted.items() if group.kind == "host")
        if not hosts:
            self._begin()
        self.want(wanted)
        await self._ready

    def _begin(self) -> None:
        """Let `start` return: a host is ready, or none is wanted."""
        if not self._ready.done():
            self._ready.set_result(None)

    def want(self, wanted: Mapping[Group, Range]) -> None:
        """Set the desired number of workers of each group."""
        self._wanted = wanted
        self.act()

    def need(self, waiting: Sequence[Unmet], loads: Mapping[str, int], *, is_full: bool) -> None:
        """Note the waiting calls, the *loads* of the hosts, and whether all hosts are full."""
        for host, sessions in loads.items():
            self._observed.note(host, sessions, time.monotonic())
        slots = self.context.factory.slots.workers
        self._needed = needed(self._wanted, waiting, slots, is_full=is_full)
        self.act()

    def act(self) -> None:
        """Start and retire workers to reach the desired numbers."""
        actions = decide(
            self._wanted,
            self._observed,
            time.monotonic(),
            unmet=self._needed,
            idle_seconds=self.context.factory.idle_seconds,
        )
        for action in actions:
            match action:
                case Start():
                    self._look_after(self._create(action))
                case Retire(worker=worker):
                    member = self._members[worker]
                    drains = member.node in self._leaving
                    member.leaves = "its node was drained" if drains else "it was retired"
                    self._observed.leave(worker)
                    if member.role == "runner":
                        self._on_news(WorkerEvent("leaves", member))
                    self._spawn(self._retire(member))
                case Report(group=group, pending=pending):
                    self._observed.report(group, pending)
                    self._on_news(action)

    async def hosts(self) -> dict[str, HostPort]:
        return self._hosts

    def _find_hosts(self, changed: Worker) -> None:
        """Find the hosts again after one of the members has *changed*."""
        if changed.role == "host":
            driving = self._driving()
            self._hosts = {m.incarnation: RemoteHost(m.handle, self._epoch) for m in driving}

    def _driving(self) -> list[Worker]:
        """Return the hosts that have started."""
        return [m for m in self._members.values() if m.role == "host" and m.presence]

    def members(self) -> Sequence[Worker]:
        """Return the workers that accept work."""
        return list(self._members.values())

    def remind(self) -> None:
        """Send the hosts the list of runners again, because an earlier message may be lost."""
        self._spawn(self._notify_hosts())  # a frozen host must not delay the others

    async def look(self) -> None:
        """Find silent workers, frozen or unreachable, and check the lost ones."""
        present = {each.incarnation: each for each in await self._board.all()}
        now = SystemClock().now()
        started = [m for m in (*self._members.values(), *self._unreachable) if m.presence]
        heard = ((member, present.get(member.incarnation)) for member in started)
        unheard = [member for member, beat in heard if beat and death_of(beat, now)]
        await asyncio.gather(*(member.ask() for member in unheard))
        looks = (self._check_lost(m, present.get(m.incarnation), now) for m in self._unreachable)
        await asyncio.gather(*looks)

    async def _check_lost(self, member: Worker, presence: Presence | None, now: datetime) -> None:
        """Check whether a lost *member* answers again, or has ended.

        The sessions of a runner's calls wait for this; a host's sessions already run elsewhere.
        """
        over, back = await member.fate(presence, now, self.context.factory.removal_seconds)
        if member.role == "host" and (over or back):
            self._unreachable.remove(member)
            await member.end(self._epoch, self._board)
        elif over is not None:
            self._unreachable.remove(member)
            await self._mark_dead(member, over)
        elif back:
            member.silent.clear()
            if not member.leaves:
                # D13: it is as good as before. If it is one too many now, one of them retires.
                self._unreachable.remove(member)
                self._look_after(member, "back")

    async def look_at_nodes(self) -> None:
        """Notice nodes that join or leave; the log's own node counts until the end."""
        nodes, leaving = await cluster_nodes(), await leaving_nodes() - {self.context.node}
        joined = nodes.keys() - self._nodes - leaving
        # The log's own first: the workspaces of many sessions are there.
        for name in sorted(joined, key=lambda name: (name != self.context.node, name)):
            self._observed.add_node(name, nodes[name])
        for name in self._nodes - nodes.keys():
            self._observed.lose_node(name)
        for name in leaving - self._leaving:
            self._observed.lose_node(name, drains=True)
            self._on_news(NodeLeaves(name))
        self._nodes, self._leaving = nodes.keys() - leaving, leaving

    async def _retire(self, member: Worker) -> None:
        """Let *member* finish its running work, and end it."""
        await asyncio.wait({self._ready})  # its sessions have to go on somewhere
        grace = self.context.factory.grace_seconds
        await self._notify_hosts()
        if member.role == "host":
            await member.drain(self._epoch, grace)
        else:
            with suppress(TimeoutError):
                # A drained node may go at any time. Otherwise calls end within their time-outs.
                async with asyncio.timeout(grace if member.node in self._leaving else None):
                    await member.run_out(self.context, self._epoch)
        await member.end(self._epoch, self._board)

    async def drain(self, seconds: float) -> None:
        """Drain the hosts within *seconds*; replace no more workers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(host.drain(self._epoch, seconds) for host in self._driving()))

    async def close(self) -> None:
        """Stop all actors that this fleet has started."""
        for task in self._tasks:
            task.cancel()
        members, self._members = [*self._members.values(), *self._unreachable], {}
        members += filter(None, [self._spare])
        await asyncio.gather(*(member.end(self._epoch, self._board) for member in members))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep_spare(self, group: Group) -> None:
        clock = SystemClock()
        await clock.sleep(_SPARE_SECONDS)
        if self._spare is None:
            self._spare = self._create(Start(group, self.context.node))

    def _create(self, start: Start) -> Worker:
        group, node = start.group, start.node
        if (spare := self._spare) is not None and (spare.group, spare.node) == (group, node):
            self._spare = None
            return spare
        incarnation = f"{group.kind}-{uuid4().hex[:12]}"
        actor = SessionHostActor if group.kind == "host" else RunnerActor
        # Where the workspaces of many sessions are, a runner may be named before its process is up.
        only = group.per_node is not None or node == self.context.node
        where = placement(group, node, start.avoid, only=only)
        made_of = self.context, incarnation, group
        handle = self.context.create(
            actor, self.context.named(incarnation), *made_of, placement=where
        )
        return Worker(group, incarnation, node, handle)

    def _look_after(self, member: Worker, came: Literal["joined", "back"] = "joined") -> None:
        """Add a worker to the fleet until it is lost."""
        self._members[member.incarnation] = member
        self._find_hosts(member)
        self._observed.start(member.incarnation, member.group, time.monotonic(), member.node)
        self._spawn(self._keep(member, came))
        if member.leaves:
            self._observed.leave(member.incarnation)
            self._spawn(self._retire(member))

    async def _keep(self, member: Worker, came: Literal["joined", "back"]) -> None:
        """Start *member*, and replace it once it is lost."""
        evidence = await self._run_until_lost(member, came)
        del self._members[member.incarnation]
        self._find_hosts(member)
        self._observed.lose(member.incarnation, time.monotonic())
        with suppress(Exception):  # while Ray's head is away: the next look does it
            # Before the loss is reported: with the report, hosts get the name of the replacement,
            # before its process is up, and need not record a wait.
            self.act()
        await self._report_lost(member, evidence)

    async def _run_until_lost(self, member: Worker, came: Literal["joined", "back"]) -> str:
        """Start *member*, and return the evidence once it is lost."""
        try:
            arguments = [self._runner_infos()] if member.role == "host" else []
            starting = member.handle.start.remote(self._epoch, *arguments)
            placing = member.handle.__ray_call__.remote(node_of)
            if member.role == "runner":
                # Hosts may name it in a call before its process is up.
                await self._notify_hosts()
            member.presence = await member.started(starting, partial(self._wait_for_node, member))
            self._find_hosts(member)
            member.node = await call(placing, CALL_SECONDS)
        except (*DEAD, *UNCLEAR, CuelineError) as error:
            if member.role == "host" and not (self._ready.done() or member.leaves):
                reason = f"no session host starts: {error}"
                self._ready.set_exception(ClusterError("the cluster", reason))
            # The worker has begun nothing, and must never begin: its replacement relies on that.
            ray.kill(member.handle)
            return f"it did not start: {type(error).__name__}"
        member.pending = False
        self._observed.place(member.incarnation, member.node)
        if member.node in self._leaving:
            self._observed.lose_node(member.node, drains=True)
        self._observed.note(member.incarnation, 0, time.monotonic())
        if member.role == "host" and not member.leaves:
            self._begin()
            if member.node == self.context.node:
                self._spawn(self._keep_spare(member.group))
        await self._notify_hosts()
        self._on_news(WorkerEvent(came, member))
        note = partial(self._note_calls, member)
        return await member.until_lost(self.context, self._epoch, self._on_trouble, note)

    def _note_calls(self, member: Worker, calls: int) -> None:
        member.calls = calls
        self._observed.note(member.incarnation, calls, time.monotonic())

    async def _wait_for_node(self, member: Worker) -> None:
        """Let *member* wait for a node: it gets no calls, and the hosts are informed.

        Raises:
            TimeoutError: it has to start on the log's own node; another one starts elsewhere.
        """
        if member.node == self.context.node and member.group.per_node is None:
            self._observed.lose_node(member.node)
            member.leaves = "its node is full"
            raise TimeoutError(member.leaves)
        member.pending = True
        self._observed.wait(member.incarnation)
        if member.role == "host":
            self._begin()
        await self._notify_hosts()

    async def _report_lost(self, member: Worker, evidence: str) -> None:
        """Inform the hosts that *member* accepts no more work, with the evidence of its end."""
        over = await member.is_over()
        if over is not None:
            await self._mark_dead(member, member.leaves or over)
            return
        # Ray ends an actor without handles.
        self._unreachable.append(member)
        await self._notify_hosts()
        self._on_news(WorkerEvent("lost", member, evidence))

    async def _mark_dead(self, member: Worker, evidence: str) -> None:
        """Inform the hosts that *member* and its running calls have ended."""
        self._gone[member.incarnation] = evidence
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        with suppress(CuelineError):
            await self._board.leave(member.incarnation)
        await self._notify_hosts()
        self._on_news(WorkerEvent("gone", member, evidence))

    def _runner_infos(self) -> list[RunnerInfo]:
        """Return the runners that answer; lost and leaving runners accept no more calls."""
        there = [*self._members.values(), *self._unreachable]
        runners = [m for m in there if m.role == "runner" and not m.silent.is_set()]
        able = [m for m in runners if m.may_have_calls(self.context)]
        return [m.runner_info(self.context, lost=m in self._unreachable) for m in able]

    def offers(self) -> list[Offer]:
        """Return the offers of the runners that accept calls."""
        return [each.offer for each in self._runner_infos() if each.takes]

    async def _notify_hosts(self) -> None:
        hosts = self._driving()
        news = self._epoch, self._runner_infos(), dict(self._gone), max(1, len(hosts))
        await asyncio.gather(*(attempt(host.handle.know.remote(*news)) for host in hosts))
