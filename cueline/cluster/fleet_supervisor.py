"""The hosts and runners of one dispatcher: started, watched, replaced."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import uuid4

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import deaf_seconds, death_of, evidence_of_end, find
from cueline.actors.session_host import HostPort
from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call, poll
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.log_writer import open_log, start_writer
from cueline.cluster.runner import RunnerActor
from cueline.cluster.runner_directory import RunnerInfo, leaving_nodes, living_nodes, removal
from cueline.cluster.session_host import RemoteHost, SessionHostActor
from cueline.cluster.worker import CALL_SECONDS, Role, Worker, WorkerEvent, attempt
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import Presence, PresenceBoard

START_SECONDS = 60.0
REST_SECONDS = 5.0
"""Wait before the second replacement of an actor that dies young: its start may kill it."""
_AGAIN_SECONDS = 0.2
_REMEMBERED = 1000


class FleetSupervisor:
    """Keeps a number of hosts and runners alive. See also `HostDirectory`."""

    def __init__(
        self,
        site: ClusterContext,
        board: PresenceBoard,
        *,
        epoch: int,
        on_trouble: Trouble,
        on_news: Callable[[WorkerEvent], None],
    ) -> None:
        self.site = site
        self._board = board
        self._epoch = epoch
        self._on_trouble = on_trouble
        self._on_news = on_news
        self._clock = SystemClock()
        self._members: dict[str, Worker] = {}
        self._gone: dict[str, str] = {}
        self._unreachable: list[Worker] = []
        """Lost, and may still live: a frozen runner may finish what it began."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer: Handle = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def open_log(self) -> None:
        """Start the writer, and wait until it has opened the log. Raises what `open_log` raises."""
        self._writer = start_writer(self.site)
        await open_log(self.site, self._writer)

    async def start(self, hosts: int, runners: int, adopted: Sequence[Worker] = ()) -> None:
        """Start the workers missing from *adopted*, and wait until a host drives.

        Silent workers count as lost.

        Raises:
            ClusterError: none starts.
        """
        nodes = await self._nodes()
        self._unreachable += [member for member in adopted if member.silent.is_set()]
        wanted_of: dict[Role, int] = {"host": hosts, "runner": runners}
        for role, wanted in wanted_of.items():
            there = [m for m in adopted if m.role == role and not m.silent.is_set()]
            for number in range(wanted):
                known = there[number] if number < len(there) else None
                self._spawn(self._keep(role, nodes[number % len(nodes)], known))
            for member in there[wanted:]:
                self._spawn(self._use_up(member))
        await self._ready

    async def hosts(self) -> dict[str, HostPort]:
        """See `HostDirectory`."""
        return {
            member.incarnation: RemoteHost(member.handle, self._epoch)
            for member in self._members.values()
            if member.role == "host" and member.presence is not None and not member.leaves
        }

    def members(self) -> Sequence[Worker]:
        """Return the workers that accept work."""
        return list(self._members.values())

    def remind(self) -> None:
        """Send the hosts the list of runners again: an earlier message may be lost."""
        self._spawn(self._notify_hosts())  # a frozen host must not delay the others

    async def look(self) -> None:
        """Find silent workers, frozen or unreachable, and check the lost ones."""
        present = await self._board.all()
        now = self._clock.now()
        unheard = []
        for member in (*self._members.values(), *self._unreachable):
            presence = find(present, member.incarnation)
            if member.presence is not None and presence and death_of(presence, now):
                unheard.append(member)
        await asyncio.gather(*(member.ask() for member in unheard))
        looks = (self._check_lost(m, find(present, m.incarnation), now) for m in self._unreachable)
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
            await self._notify_hosts()
            self._on_news(WorkerEvent("back", member))

    async def leave_nodes(self) -> None:
        """Move workers away from draining nodes; the log's own node stays to the last."""
        leaving = await leaving_nodes() - {self.site.node}
        for member in self._members.values():
            if member.node in leaving and member.presence is not None and not member.leaves:
                member.leaves = True
                self._spawn(self._leave(member))

    async def _leave(self, member: Worker) -> None:
        """Let *member* finish its running work, and end it; its keeper starts another."""
        grace = self.site.parts.grace_seconds
        await self._notify_hosts()
        if member.role == "host":
            await self._drain(member, grace)
        else:
            await self._clock.sleep(grace)
        await self._end(member)

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

    async def _nodes(self) -> list[str]:
        try:
            others = await living_nodes() - await leaving_nodes() - {self.site.node}
        except Exception:  # noqa: BLE001 - whatever Ray raises while its head is away
            others = set()  # start somewhere, if only beside the log
        return [self.site.node, *sorted(others)]

    async def _node_for(self, node: str) -> str:
        """Return *node*, or if it is gone or draining, the node with the fewest workers."""
        nodes = await self._nodes()
        if node in nodes:
            return node
        taken = Counter(member.node for member in self._members.values())
        return min(nodes, key=lambda each: taken[each])

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, role: Role, node: str, member: Worker | None) -> None:
        """Keep one worker of *role* alive, always; *member* is the first, if it exists."""
        member = self._join(member) if member else self._create(role, node)
        brief = 0
        while True:
            began = time.monotonic()
            evidence = await self._run_until_lost(member)
            del self._members[member.incarnation]
            brief = brief + 1 if time.monotonic() - began < REST_SECONDS else 0
            lost = member
            if brief > 1:
                await self._report_lost(lost, evidence)
                await self._clock.sleep(REST_SECONDS)
                member = self._create(role, await self._node_for(node))
            else:
                # Named before its process is up: hosts that learn of the loss also learn of the
                # replacement, and need not record a wait.
                member = self._create(role, await self._node_for(node))
                await self._report_lost(lost, evidence)

    async def _use_up(self, member: Worker) -> None:
        """Keep one worker beyond the wanted number while it lives."""
        evidence = await self._run_until_lost(self._join(member))
        del self._members[member.incarnation]
        await self._report_lost(member, evidence)

    def _create(self, role: Role, node: str) -> Worker:
        incarnation = f"{role}-{uuid4().hex[:12]}"
        actor = SessionHostActor if role == "host" else RunnerActor
        name = self.site.named(incarnation)
        handle = self.site.create(actor, name, self.site, incarnation, node=node)
        return self._join(Worker(role, incarnation, node, handle))

    def _join(self, member: Worker) -> Worker:
        self._members[member.incarnation] = member
        return member

    async def _run_until_lost(self, member: Worker) -> str:
        """Start *member*, and return the evidence once it is lost."""
        try:
            arguments = [self._runner_infos()] if member.role == "host" else []
            starting = member.handle.start.remote(self._epoch, *arguments)
            if member.role == "runner":
                # Hosts may name it in a call before its process is up.
                await self._notify_hosts()
            member.presence = await call(starting, START_SECONDS)
        except (*DEAD, *UNCLEAR, CuelineError) as error:
            if member.role == "host" and not self._ready.done():
                reason = f"no session host starts: {error}"
                self._ready.set_exception(ClusterError("the cluster", reason))
            # It has begun nothing and never may: others rely on that.
            ray.kill(member.handle)
            return f"it did not start: {type(error).__name__}"
        if member.role == "host" and not self._ready.done():
            self._ready.set_result(None)
        await self._notify_hosts()
        self._on_news(WorkerEvent("joined", member))
        return await self._watch_until_lost(member)

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
                    await poll(member.handle.ping, self._epoch, at_most=often)
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
            await self._mark_dead(member, over)
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
        runners = [m for m in there if m.role == "runner" and not m.silent.is_set()]
        return [m.runner_info(self.site, lost=m in self._unreachable) for m in runners]

    async def _notify_hosts(self) -> None:
        cards, gone = self._runner_infos(), dict(self._gone)
        hosts = [m for m in self._members.values() if m.role == "host" and m.presence]
        told = (m.handle.know.remote(self._epoch, cards, gone) for m in hosts)
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
