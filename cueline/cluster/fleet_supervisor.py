"""The hosts and runners of one dispatcher: started, watched, replaced, retired."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Literal
from uuid import uuid4

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import deaf_seconds, death_of, evidence_of_end
from cueline.actors.session_host import HostPort
from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call, poll
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.fleet_news import FleetNews, NodeLeaves, WorkerEvent
from cueline.cluster.log_writer import open_log, start_writer
from cueline.cluster.placement import cluster_nodes, is_pending, node_of, placement
from cueline.cluster.runner import RunnerActor
from cueline.cluster.runner_directory import RunnerInfo, leaving_nodes, removal
from cueline.cluster.session_host import RemoteHost, SessionHostActor
from cueline.cluster.worker import CALL_SECONDS, Worker, attempt
from cueline.deciders.fleet import Group, Range
from cueline.deciders.matching import Offer, Unmet
from cueline.deciders.reconcile import Observed, Report, Retire, Start, decide, needed
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import Presence, PresenceBoard

START_SECONDS = 60.0
PENDING_SECONDS = 5.0
"""A worker that has not started by then may wait for a node."""
_AGAIN_SECONDS = 0.2
_LONG_SECONDS = 365 * 86400.0
_REMEMBERED = 1000


class FleetSupervisor:
    """Starts and ends hosts and runners until there are as many as wanted.

    See also `HostDirectory`.
    """

    def __init__(
        self,
        site: ClusterContext,
        board: PresenceBoard,
        *,
        epoch: int,
        on_trouble: Trouble,
        on_news: Callable[[FleetNews], None],
    ) -> None:
        self.site = site
        self._board = board
        self._epoch = epoch
        self._on_trouble = on_trouble
        self._on_news = on_news
        self._clock = SystemClock()
        self._wanted: Mapping[Group, Range] = {}
        self._needed: Mapping[Group, int] = {}
        """So many more workers the waiting work could use."""
        self._observed = Observed()
        self._nodes: set[str] = set()
        """The nodes that take workers."""
        self._leaving: set[str] = set()
        self._members: dict[str, Worker] = {}
        self._hosts: dict[str, HostPort] = {}
        """Those of the members that have started; another mapping after each change."""
        self._gone: dict[str, str] = {}
        self._unreachable: list[Worker] = []
        """Lost, and may still live: a frozen runner may finish what it began."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer: Handle = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open_log(self) -> None:
        """Start the writer, and wait until it has opened the log. Raises what `open_log` raises."""
        self._writer = await start_writer(self.site)
        await open_log(self.site, self._writer)

    async def start(self, wanted: Mapping[Group, Range], adopted: Sequence[Worker] = ()) -> None:
        """Start the *wanted* workers missing from *adopted*.

        Wait until a host drives, or waits for a node. Silent workers count as lost.

        Raises:
            ClusterError: no host starts.
        """
        for member in adopted:
            if member.silent.is_set():
                self._unreachable.append(member)
                continue
            self._look_after(member)
        with suppress(Exception):  # while Ray's head is away: the next look does it
            await self.look_at_nodes()
        hosts = sum(count.least for group, count in wanted.items() if group.kind == "host")
        if not hosts and not self._ready.done():
            self._ready.set_result(None)
        self.want(wanted)
        await self._ready

    def want(self, wanted: Mapping[Group, Range]) -> None:
        """Have so many workers of each group from now on."""
        self._wanted = wanted
        self.act()

    def need(self, waiting: Sequence[Unmet], loads: Mapping[str, int], *, is_full: bool) -> None:
        """Note the calls that wait for a runner, the *loads* of the hosts, and if all are full."""
        for host, sessions in loads.items():
            self._observed.note(host, sessions, time.monotonic())
        slots = self.site.parts.slots.workers
        self._needed = needed(self._wanted, waiting, slots, is_full=is_full)
        self.act()

    def act(self) -> None:
        """Do what is to be done for the fleet to become the wanted one."""
        actions = decide(
            self._wanted,
            self._observed,
            time.monotonic(),
            unmet=self._needed,
            idle_seconds=self.site.parts.idle_seconds,
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
            self._hosts = {
                member.incarnation: RemoteHost(member.handle, self._epoch)
                for member in self._members.values()
                if member.role == "host" and member.presence is not None
            }

    def members(self) -> Sequence[Worker]:
        """Return the workers that accept work."""
        return list(self._members.values())

    def remind(self) -> None:
        """Send the hosts the list of runners again: an earlier message may be lost."""
        self._spawn(self._notify_hosts())  # a frozen host must not delay the others

    async def look(self) -> None:
        """Find silent workers, frozen or unreachable, and check the lost ones."""
        present = {each.incarnation: each for each in await self._board.all()}
        now = self._clock.now()
        unheard = []
        for member in (*self._members.values(), *self._unreachable):
            presence = present.get(member.incarnation)
            if member.presence is not None and presence and death_of(presence, now):
                unheard.append(member)
        await asyncio.gather(*(member.ask() for member in unheard))
        looks = (self._check_lost(m, present.get(m.incarnation), now) for m in self._unreachable)
        await asyncio.gather(*looks)

    async def _check_lost(self, member: Worker, presence: Presence | None, now: datetime) -> None:
        """Find out whether a lost *member* answers again, or has ended.

        A runner's calls wait for one of both; a host's sessions run elsewhere already.
        """
        lost = member.silent.is_set() or member.presence is None
        back = False
        member.presence = member.presence or presence
        if member.presence is None:
            # It has not started: it was killed for that, or nobody waited so long.
            over = await member.is_over()
        elif presence is None:
            # It had registered once: if it is not on the board, it has left.
            over = f"{member.role} {member.incarnation} has left"
        else:
            over = (
                (await member.is_over() or removal(presence, self.site.parts.removal_seconds))
                if lost
                else evidence_of_end(presence)
            )
            back = lost and over is None and death_of(presence, now) is None
        if member.role == "host" and (over or back):
            self._unreachable.remove(member)
            await self._end(member)
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
        """Notice nodes that join or leave; the log's own node stays to the last."""
        nodes, leaving = await cluster_nodes(), await leaving_nodes() - {self.site.node}
        joined = nodes.keys() - self._nodes - leaving
        # The log's own first: the workspaces of many sessions are there.
        for name in sorted(joined, key=lambda name: (name != self.site.node, name)):
            self._observed.add_node(name, nodes[name])
        for name in self._nodes - nodes.keys():
            self._observed.lose_node(name)
        for name in leaving - self._leaving:
            self._observed.lose_node(name, drains=True)
            self._on_news(NodeLeaves(name))
        self._nodes, self._leaving = nodes.keys() - leaving, leaving

    async def _retire(self, member: Worker) -> None:
        """Let *member* finish its running work, and end it."""
        grace = self.site.parts.grace_seconds
        await self._notify_hosts()
        if member.role == "host":
            await self._drain(member, grace)
        else:
            with suppress(TimeoutError):
                # A drained node may go at any time. Otherwise calls end within their time-outs.
                async with asyncio.timeout(grace if member.node in self._leaving else None):
                    await self._run_out(member)
        await self._end(member)

    async def _relieve(self, member: Worker) -> None:
        """Let a worker that leaves finish, once its sessions can go on here."""
        await asyncio.wait({self._ready})
        await self._retire(member)

    async def _run_out(self, member: Worker) -> None:
        """Let a runner start nothing more, and wait until its last outcome is fetched."""
        running = 1
        while running and self._may_have_calls(member):
            try:
                running = await poll(member.handle.retire, self._epoch)
            except DEAD:
                return
            except (*UNCLEAR, CuelineError):
                await self._clock.sleep(_AGAIN_SECONDS)

    async def drain(self, seconds: float) -> None:
        """Drain the hosts within *seconds*; replace nothing any more."""
        for task in self._tasks:
            task.cancel()
        hosts = [m for m in self._members.values() if m.role == "host" and m.presence]
        await asyncio.gather(*(self._drain(member, seconds) for member in hosts))

    async def close(self) -> None:
        """Stop everything that was started here."""
        for task in self._tasks:
            task.cancel()
        members, self._members = [*self._members.values(), *self._unreachable], {}
        await asyncio.gather(*(self._end(member) for member in members))

    def close_log(self) -> None:
        """Stop the writer: nothing here needs the log any more."""
        if self._writer is not None:
            ray.kill(self._writer)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _create(self, start: Start) -> Worker:
        group, node = start.group, start.node
        incarnation = f"{group.kind}-{uuid4().hex[:12]}"
        actor = SessionHostActor if group.kind == "host" else RunnerActor
        # Where the workspaces of many sessions are, a runner may be named before its process is up.
        only = group.per_node is not None or node == self.site.node
        handle = self.site.create(
            actor,
            self.site.named(incarnation),
            self.site,
            incarnation,
            group,
            placement=placement(group, node, start.avoid, only=only),
        )
        return Worker(group, incarnation, node, handle)

    def _look_after(self, member: Worker, came: Literal["joined", "back"] = "joined") -> None:
        """Take a worker into the fleet until it is lost."""
        self._members[member.incarnation] = member
        self._find_hosts(member)
        self._observed.start(member.incarnation, member.group, time.monotonic(), member.node)
        self._spawn(self._keep(member, came))
        if member.leaves:
            self._observed.leave(member.incarnation)
            self._spawn(self._relieve(member))

    async def _keep(self, member: Worker, came: Literal["joined", "back"]) -> None:
        """Start *member*, and have another take its place once it is lost."""
        evidence = await self._run_until_lost(member, came)
        del self._members[member.incarnation]
        self._find_hosts(member)
        self._observed.lose(member.incarnation, time.monotonic())
        with suppress(Exception):  # while Ray's head is away: the next look does it
            # Before the loss is told: hosts that learn of it also learn of the replacement, before
            # its process is up, and need not record a wait.
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
            member.presence = await self._started(member, starting)
            self._find_hosts(member)
            member.node = await call(placing, CALL_SECONDS)
        except (*DEAD, *UNCLEAR, CuelineError) as error:
            if member.role == "host" and not (self._ready.done() or member.leaves):
                reason = f"no session host starts: {error}"
                self._ready.set_exception(ClusterError("the cluster", reason))
            # It has begun nothing and never may: others rely on that.
            ray.kill(member.handle)
            return f"it did not start: {type(error).__name__}"
        member.pending = False
        self._observed.place(member.incarnation, member.node)
        if member.node in self._leaving:
            self._observed.lose_node(member.node, drains=True)
        self._observed.note(member.incarnation, 0, time.monotonic())
        if member.role == "host" and not (self._ready.done() or member.leaves):
            self._ready.set_result(None)
        await self._notify_hosts()
        self._on_news(WorkerEvent(came, member))
        return await self._watch_until_lost(member)

    async def _started(self, member: Worker, starting: object) -> Presence:
        """Return the presence of a worker that starts; it may wait for a node for any time."""
        deadline = time.monotonic() + START_SECONDS
        with_answer = asyncio.create_task(call(starting, _LONG_SECONDS))
        try:
            while True:
                await asyncio.wait({with_answer}, timeout=PENDING_SECONDS)
                if with_answer.done():
                    presence: Presence = with_answer.result()
                    return presence
                if not await is_pending(member.handle, member.group):
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"no answer within {START_SECONDS:.0f} s")
                    continue
                deadline = time.monotonic() + START_SECONDS
                if not member.pending:
                    await self._wait_for_node(member)
        finally:
            with_answer.cancel()

    async def _wait_for_node(self, member: Worker) -> None:
        """Have *member* wait for a node: no calls go to it, and others know.

        Raises:
            TimeoutError: it was to start on the log's own node; another starts elsewhere.
        """
        if member.node == self.site.node and member.group.per_node is None:
            self._observed.lose_node(member.node)
            member.leaves = "its node is full"
            raise TimeoutError(member.leaves)
        member.pending = True
        self._observed.wait(member.incarnation)
        if member.role == "host" and not self._ready.done():
            self._ready.set_result(None)
        await self._notify_hosts()

    async def _watch_until_lost(self, member: Worker) -> str:
        silence = asyncio.create_task(member.silent.wait())
        watching = asyncio.create_task(self._watch_process(member))
        try:
            await asyncio.wait({silence, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            silence.cancel()
            watching.cancel()
        if watching.done() and not watching.cancelled():
            return watching.result()
        return "it is silent"

    async def _watch_process(self, member: Worker) -> str:
        """Keep one call waiting in *member*: it fails within milliseconds of the worker's death."""
        # By these calls it hears that its dispatcher lives.
        often = deaf_seconds(self.site.parts.removal_seconds) / 2
        while True:
            try:
                if member.role == "host":
                    for stream, error in await poll(member.handle.troubles, at_most=often):
                        self._on_trouble(stream, error)
                else:
                    ping = member.handle.ping
                    member.calls = await poll(ping, self._epoch, member.calls, at_most=often)
                    self._observed.note(member.incarnation, member.calls, time.monotonic())
            except DEAD:
                return "Ray reports the exit of its process"
            except (*UNCLEAR, ClusterError):
                if member.presence is not None and (evidence := evidence_of_end(member.presence)):
                    return evidence
                await self._clock.sleep(_AGAIN_SECONDS)

    async def _report_lost(self, member: Worker, evidence: str) -> None:
        """Tell the others that *member* accepts nothing more, and the evidence of its end."""
        over = await member.is_over()
        if over is not None:
            await self._mark_dead(member, member.leaves or over)
            return
        # Ray ends an actor without handles.
        self._unreachable.append(member)
        await self._notify_hosts()
        self._on_news(WorkerEvent("lost", member, evidence))

    async def _mark_dead(self, member: Worker, evidence: str) -> None:
        """Tell the others that *member* and its running calls have ended."""
        self._gone[member.incarnation] = evidence
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
        with suppress(CuelineError):
            await self._board.leave(member.incarnation)
        await self._notify_hosts()
        self._on_news(WorkerEvent("gone", member, evidence))

    def _runner_infos(self) -> list[RunnerInfo]:
        """Return the runners that answer; lost and leaving ones accept nothing more."""
        there = [*self._members.values(), *self._unreachable]
        runners = [
            m
            for m in there
            if m.role == "runner" and not m.silent.is_set() and self._may_have_calls(m)
        ]
        return [m.runner_info(self.site, lost=m in self._unreachable) for m in runners]

    def _may_have_calls(self, runner: Worker) -> bool:
        # One on the log's own node will have started in a moment; another may wait for a node.
        has_place = runner.presence is not None or runner.node == self.site.node
        return has_place and not runner.pending

    def offers(self) -> list[Offer]:
        """Return what the runners offer that accept calls."""
        return [each.offer for each in self._runner_infos() if each.takes]

    async def _notify_hosts(self) -> None:
        cards, gone = self._runner_infos(), dict(self._gone)
        hosts = [m for m in self._members.values() if m.role == "host" and m.presence]
        share = max(1, len(hosts))
        told = (m.handle.know.remote(self._epoch, cards, gone, share) for m in hosts)
        await asyncio.gather(*(attempt(ref) for ref in told))

    async def _drain(self, member: Worker, seconds: float) -> None:
        await attempt(member.handle.drain.remote(self._epoch, seconds), seconds + CALL_SECONDS)

    async def _end(self, member: Worker) -> None:
        if member.role == "host":
            with suppress(CuelineError):
                await self._board.leave(member.incarnation)
        elif member.presence is not None:
            # It says itself that it has left. Nobody may say so for a frozen one: its calls would
            # count as lost, and it may wake up.
            await attempt(member.handle.close.remote(self._epoch))
        ray.kill(member.handle)
