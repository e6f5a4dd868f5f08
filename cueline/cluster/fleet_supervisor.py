"""Starts, watches, replaces and retires the hosts and runners of one dispatcher."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import death_of
from cueline.actors.session_host import HostPort
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.fleet_member import (
    CALL_SECONDS,
    FleetMember,
    FleetNews,
    NodeLeaves,
    WorkerEvent,
    attempt,
)
from cueline.cluster.placement import cluster_nodes, node_of, placement
from cueline.cluster.ray_call import DEAD, UNCLEAR, call
from cueline.cluster.runner import RunnerActor
from cueline.cluster.runner_directory import RunnerInfo, leaving_nodes
from cueline.cluster.session_host import RemoteHost, SessionHostActor
from cueline.deciders.fleet import Group, Range
from cueline.deciders.fleet_worker import (
    Action,
    Begins,
    Bury,
    Ends,
    Fact,
    Joined,
    Leaves,
    Loaded,
    Lost,
    Ready,
    Tell,
    Unreachable,
    Waits,
    WorkerState,
    note,
)
from cueline.deciders.matching import Offer, Unmet
from cueline.deciders.reconcile import Census, Node, Report, Retire, Start, decide, needed
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import PresenceBoard

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
        self._census = Census()
        self._members: dict[str, FleetMember] = {}
        """The workers that have not ended."""
        self._hosts: dict[str, HostPort] = {}
        """The running hosts; another mapping after each change."""
        self._outside: Mapping[str, RunnerInfo] = {}
        """The runners outside of the cluster, which come and go by themselves."""
        self._gone: dict[str, str] = {}
        self._spare: FleetMember | None = None
        """The spare: a host actor that is not started, for the next host."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(
        self, wanted: Mapping[Group, Range], adopted: Sequence[FleetMember] = ()
    ) -> None:
        """Start the *wanted* workers missing from *adopted*.

        Wait until a host is ready, or waits for a node.

        Raises:
            ClusterError: no host starts.
        """
        for member in adopted:
            self._note(member, Begins())
        with suppress(Exception):  # while Ray's head is away: the next look does it
            await self.look_at_nodes()
        hosts = sum(count.least for group, count in wanted.items() if group.kind == "host")
        if not hosts:
            self._begin()
        self.want(wanted)
        await self._ready

    def _begin(self, failure: str | None = None) -> None:
        """Let `start` return, because a host is ready or none is wanted, or fail."""
        if self._ready.done():
            return
        if failure is None:
            self._ready.set_result(None)
        else:
            reason = f"no session host starts: {failure}"
            self._ready.set_exception(ClusterError("the cluster", reason))

    def want(self, wanted: Mapping[Group, Range]) -> None:
        """Set the desired number of workers of each group."""
        self._wanted = wanted
        self.act()

    def know(self, outside: Mapping[str, RunnerInfo]) -> bool:
        """Set the runners *outside* of the cluster; return whether that changes anything."""
        if outside == self._outside:
            return False
        for name in self._outside.keys() - outside.keys():
            self._note_end(name, f"runner {name} was removed")
        self._outside = outside
        self._spawn(self._notify_hosts())
        return True

    def need(self, waiting: Sequence[Unmet], loads: Mapping[str, int], *, is_full: bool) -> None:
        """Note the waiting calls, the *loads* of the hosts, and whether all hosts are full."""
        for host, sessions in loads.items():
            member = self._members.get(host)
            if member is not None and member.state.load != sessions:
                self._note(member, Loaded(sessions))
        slots = self.context.factory.slots.workers
        self._needed = needed(self._wanted, waiting, slots, is_full=is_full)
        self.act()

    def act(self) -> None:
        """Start and retire workers to reach the desired numbers."""
        actions = decide(
            self._wanted,
            self._census,
            time.monotonic(),
            unmet=self._needed,
            idle_seconds=self.context.factory.idle_seconds,
        )
        for action in actions:
            match action:
                case Start():
                    self._note(self._create(action), Begins())
                case Retire(worker=worker):
                    member = self._members[worker]
                    drains = member.state.node in self._census.draining
                    reason = "its node was drained" if drains else "it was retired"
                    self._note(member, Leaves(reason))
                case Report(group=group, pending=pending):
                    self._census.members(group).reported = pending
                    self._on_news(action)

    def _note(self, member: FleetMember, fact: Fact) -> asyncio.Task[None]:
        """Note a *fact* about *member*, and begin what follows."""
        was = member.state
        member.state, actions = note(was, fact, time.monotonic())
        self._census.put(member.incarnation, member.state)
        self._members[member.incarnation] = member
        if member.state.phase == "ended":
            del self._members[member.incarnation]
        (member.silence.set if member.state.silent else member.silence.clear)()
        if member.role == "host" and (was.phase != member.state.phase or isinstance(fact, Begins)):
            driving = self._driving()
            self._hosts = {m.incarnation: RemoteHost(m.handle, self._epoch) for m in driving}
        return self._spawn(self._carry_out(member, actions))

    async def _carry_out(self, member: FleetMember, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case "watch":
                    self._spawn(self._keep(member))
                case "notify":
                    await self._notify_hosts()
                case "replace":
                    with suppress(Exception):  # while Ray's head is away: the next look does it
                        # Before the loss is told: hosts that learn of it also learn of the
                        # replacement, before its process is up, and need not record a wait.
                        self.act()
                case "retire":
                    await self._retire(member)
                case "end":
                    await member.end(self._epoch, self._board)
                case Ready(failure):
                    self._begin(failure)
                case Tell(what, evidence):
                    self._on_news(WorkerEvent(what, member, evidence))
                case Bury(evidence):
                    await self._bury(member, evidence)

    async def hosts(self) -> dict[str, HostPort]:
        return self._hosts

    def _driving(self) -> list[FleetMember]:
        """Return the hosts that have started."""
        there = self._members.values()
        return [m for m in there if m.role == "host" and m.state.phase == "running"]

    def members(self) -> Sequence[FleetMember]:
        """Return the workers that are not lost."""
        return [m for m in self._members.values() if m.state.is_member]

    def remind(self) -> None:
        """Send the hosts the list of runners again, because an earlier message may be lost."""
        self._spawn(self._notify_hosts())  # a frozen host must not delay the others

    async def look(self) -> None:
        """Find silent workers, frozen or unreachable, and check the lost ones."""
        present = {each.incarnation: each for each in await self._board.all()}
        now = SystemClock().now()
        there = [m for m in self._members.values() if m.presence and not m.state.silent]
        heard = ((member, present.get(member.incarnation)) for member in there)
        unheard = [member for member, beat in heard if beat and death_of(beat, now)]
        await asyncio.gather(*(self._learn(member, member.is_silent()) for member in unheard))
        lost = [m for m in self._members.values() if m.state.phase == "unreachable"]
        seconds = self.context.factory.removal_seconds
        fates = [(m, m.fate(present.get(m.incarnation), now, seconds)) for m in lost]
        await asyncio.gather(*(self._learn(*fate) for fate in fates))

    async def _learn(self, member: FleetMember, asked: Awaitable[Fact | None]) -> None:
        if (fact := await asked) is not None:
            await self._note(member, fact)

    async def look_at_nodes(self) -> None:
        """Update the nodes from Ray: those that joined, left, or are being drained.

        The node of the log takes workers until it leaves, even while it is drained.
        """
        nodes, leaving = await cluster_nodes(), await leaving_nodes() - {self.context.node}
        joined = nodes.keys() - self._census.nodes.keys() - leaving
        # The log's own first: the workspaces of many sessions are there.
        for name in sorted(joined, key=lambda name: (name != self.context.node, name)):
            self._census.add_node(name, nodes[name])
        for name in self._census.nodes.keys() - nodes.keys():
            self._census.lose_node(name)
        for name in self._census.drain(leaving):
            self._on_news(NodeLeaves(name))

    async def _retire(self, member: FleetMember) -> None:
        """Let *member* finish its running work, and end it."""
        await asyncio.wait({self._ready})  # its sessions have to go on somewhere
        grace = self.context.factory.grace_seconds
        await self._notify_hosts()
        if member.role == "host":
            await member.drain(self._epoch, grace)
        else:
            drains = member.state.node in self._census.draining
            with suppress(TimeoutError):
                # A drained node may go at any time. Otherwise calls end within their time-outs.
                async with asyncio.timeout(grace if drains else None):
                    await member.run_out(self._epoch)
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
        members = [*self._members.values(), *filter(None, [self._spare])]
        self._members = {}
        await asyncio.gather(*(member.end(self._epoch, self._board) for member in members))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _keep_spare(self, group: Group) -> None:
        clock = SystemClock()
        await clock.sleep(_SPARE_SECONDS)
        if self._spare is None:
            self._spare = self._create(Start(group, self.context.node))

    def _create(self, start: Start) -> FleetMember:
        group, node = start.group, start.node
        spare = self._spare
        if spare is not None and (spare.state.group, spare.state.node) == (group, node):
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
        state = WorkerState(group, node, is_known=node == self.context.node)
        return FleetMember(incarnation, handle, state)

    async def _keep(self, member: FleetMember) -> None:
        """Start *member*, and note when it is lost."""
        failure = None
        try:
            node = await self._start(member)
        except (*DEAD, *UNCLEAR, CuelineError) as error:
            # The worker has begun nothing, and must never begin: its replacement relies on that.
            ray.kill(member.handle)
            failure, evidence = str(error), f"it did not start: {type(error).__name__}"
        else:
            joined = self._note(member, Joined(node))
            if member.role == "host" and node == self.context.node and not member.state.leaves:
                self._spawn(self._keep_spare(member.state.group))
            await joined
            evidence = await member.until_lost(
                self.context,
                self._epoch,
                self._on_trouble,
                lambda calls: self._note(member, Loaded(calls)),
            )
        await self._note(member, Lost(failure))
        over = await member.is_over()
        await self._note(member, Unreachable(evidence) if over is None else Ends(over))

    async def _start(self, member: FleetMember) -> str:
        """Start *member*, and return its node."""
        arguments = [self._runner_infos()] if member.role == "host" else []
        starting = member.handle.start.remote(self._epoch, *arguments)
        placing = member.handle.__ray_call__.remote(node_of)
        if member.role == "runner":
            # Hosts may name it in a call before its process is up.
            await self._notify_hosts()
        member.presence = await member.started(starting, partial(self._wait_for_node, member))
        node: str = await call(placing, CALL_SECONDS)
        return node

    async def _wait_for_node(self, member: FleetMember) -> None:
        """Let *member* wait for a node: it gets no calls, and the hosts are informed.

        Raises:
            TimeoutError: it has to start on the log's own node; another one starts elsewhere.
        """
        await self._note(member, Waits(self.context.node))
        if member.state.phase != "pending":
            self._census.add_node(member.state.node, Node({}, {}))
            raise TimeoutError(member.state.leaves)

    async def _bury(self, member: FleetMember, evidence: str) -> None:
        """Inform all that *member* and its running calls have ended."""
        self._note_end(member.incarnation, evidence)
        with suppress(CuelineError):
            await self._board.leave(member.incarnation)
        await self._notify_hosts()
        self._on_news(WorkerEvent("gone", member, evidence))

    def _note_end(self, incarnation: str, evidence: str) -> None:
        self._gone[incarnation] = evidence
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def _runner_infos(self) -> list[RunnerInfo]:
        """Return the runners that answer; lost and leaving runners accept no more calls."""
        runners = [m for m in self._members.values() if m.role == "runner"]
        able = [m for m in runners if m.state.is_known and not m.state.silent]
        return [*(member.runner_info(self.context) for member in able), *self._outside.values()]

    def offers(self) -> list[Offer]:
        """Return the offers of the runners that accept calls."""
        return [each.offer for each in self._runner_infos() if each.takes]

    async def _notify_hosts(self) -> None:
        hosts = self._driving()
        news = self._epoch, self._runner_infos(), dict(self._gone), max(1, len(hosts))
        await asyncio.gather(*(attempt(host.handle.know.remote(*news)) for host in hosts))
