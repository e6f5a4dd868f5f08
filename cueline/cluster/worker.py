"""A host or runner of the fleet, and the facts that its dispatcher records of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import deaf_seconds, death_of, evidence_of_end
from cueline.actors.runner_registry import RUNNER
from cueline.clock import SystemClock
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call, poll
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.placement import is_pending, node_of_actor
from cueline.cluster.runner_directory import RunnerInfo, living_nodes, removal
from cueline.deciders.fleet import Group, group_of
from cueline.deciders.reconcile import Report, takes
from cueline.errors import ClusterError, CuelineError
from cueline.events.fleet import (
    FleetReport,
    HostJoined,
    HostLost,
    NodeDraining,
    RunnerRegistered,
    RunnerRemoved,
    WorkerKind,
    WorkersPending,
)
from cueline.events.store import Presence, PresenceBoard

START_SECONDS = 60.0
PENDING_SECONDS = 5.0
"""The time after which a worker that has not started may wait for a node."""
CALL_SECONDS = 5.0
AGAIN_SECONDS = 0.2
_LOOK_SECONDS = 0.2
_ANSWER_SECONDS = 1.0
_LONG_SECONDS = 365 * 86400.0


@dataclass(slots=True, eq=False)
class Worker:
    """A host or runner of the fleet."""

    group: Group
    incarnation: str
    node: str
    handle: Handle
    presence: Presence | None = None
    """None until it has started."""
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    calls: int = 0
    """The number of unsettled calls in the runner's last answer."""
    pending: bool = False
    """Whether it waits for a node that can hold it."""
    name: str = ""
    """The name of its actor, if another version has named it."""
    leaves: str = ""
    """Why it accepts no more work: it retires, or its node is drained or has no room."""

    @property
    def role(self) -> WorkerKind:
        """Whether it is a host or a runner."""
        return self.group.kind

    def runner_info(self, context: ClusterContext, *, lost: bool) -> RunnerInfo:
        """Return the description of a runner for hosts."""
        here = context.machine if self.node == context.node else None
        machine = here if self.presence is None else self.presence.machine
        name = self.name or context.named(self.incarnation)
        return RunnerInfo(
            self.incarnation,
            name,
            self.node,
            machine,
            not (lost or self.leaves),
            dict(self.group.labels),
            takes(self.group),
        )

    def may_have_calls(self, context: ClusterContext) -> bool:
        """Whether hosts may call a runner."""
        # A runner on the log's own node starts in a moment; another may wait for a node.
        return (self.presence is not None or self.node == context.node) and not self.pending

    async def started(self, starting: object, wait: Callable[[], Awaitable[None]]) -> Presence:
        """Return the presence from *starting*; a wait for a node may take any time.

        *wait* is called when that wait begins.

        Raises:
            TimeoutError: it does not start.
        """
        deadline = time.monotonic() + START_SECONDS
        with_answer = asyncio.create_task(call(starting, _LONG_SECONDS))
        try:
            while True:
                await asyncio.wait({with_answer}, timeout=PENDING_SECONDS)
                if with_answer.done():
                    presence: Presence = with_answer.result()
                    return presence
                if not await is_pending(self.handle, self.group):
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"no answer within {START_SECONDS:.0f} s")
                    continue
                deadline = time.monotonic() + START_SECONDS
                if not self.pending:
                    await wait()
        finally:
            with_answer.cancel()

    async def until_lost(
        self,
        context: ClusterContext,
        epoch: int,
        on_trouble: Trouble,
        on_calls: Callable[[int], None],
    ) -> str:
        """Wait until the worker ends or is silent, and return the evidence.

        *on_trouble* gets the errors of a host, and *on_calls* the number of calls of a runner.
        """
        # These calls show the worker that its dispatcher lives.
        often = deaf_seconds(context.factory.removal_seconds) / 2
        silence = asyncio.create_task(self.silent.wait())
        watching = asyncio.create_task(self._until_end(epoch, often, on_trouble, on_calls))
        try:
            await asyncio.wait({silence, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            silence.cancel()
            watching.cancel()
        return watching.result() if watching.done() else "it is silent"

    async def _until_end(
        self, epoch: int, often: float, on_trouble: Trouble, on_calls: Callable[[int], None]
    ) -> str:
        """Keep one call open: it fails within milliseconds of the worker's death."""
        clock = SystemClock()
        while True:
            try:
                if self.role == "host":
                    for stream, error in await poll(self.handle.troubles, at_most=often):
                        on_trouble(stream, error)
                else:
                    on_calls(await poll(self.handle.ping, epoch, self.calls, at_most=often))
            except DEAD:
                return "Ray reports the exit of its process"
            except (*UNCLEAR, ClusterError):
                if self.presence is not None and (evidence := evidence_of_end(self.presence)):
                    return evidence
                await clock.sleep(AGAIN_SECONDS)

    async def run_out(self, context: ClusterContext, epoch: int) -> None:
        """Let a runner start no more calls, and wait until its last outcome is fetched."""
        clock, running = SystemClock(), 1
        while running and self.may_have_calls(context):
            try:
                running = await poll(self.handle.retire, epoch)
            except DEAD:
                return
            except (*UNCLEAR, CuelineError):
                await clock.sleep(AGAIN_SECONDS)

    async def drain(self, epoch: int, seconds: float) -> None:
        """Let a host stop driving within *seconds*."""
        await attempt(self.handle.drain.remote(epoch, seconds), seconds + CALL_SECONDS)

    async def end(self, epoch: int, board: PresenceBoard) -> None:
        """End its process."""
        if self.role == "host":
            with suppress(CuelineError):
                await board.leave(self.incarnation)
        elif self.presence is not None:
            # The runner itself records that it has left. No other process may do so for a frozen
            # one: its calls would count as lost, and it may wake up.
            await attempt(self.handle.close.remote(epoch))
        ray.kill(self.handle)

    async def ask(self) -> None:
        """Ping a silent worker, whose heartbeats alone may be lost."""
        if self.silent.is_set():
            return
        try:
            await call(self.handle.__ray_ready__.remote(), _ANSWER_SECONDS)
        except (*DEAD, *UNCLEAR):
            self.silent.set()

    async def fate(
        self, presence: Presence | None, now: datetime, removal_seconds: float
    ) -> tuple[str | None, bool]:
        """Return the evidence of the end of a lost worker, and whether it answers again.

        *presence* is its current entry on the board.
        """
        lost = self.silent.is_set() or self.presence is None
        self.presence = self.presence or presence
        if self.presence is None:
            # The worker has not started: it was killed for that, or the wait was too long.
            return await self.is_over(), False
        if presence is None:
            # The worker had registered once: if it is not on the board, it has left.
            return f"{self.role} {self.incarnation} has left", False
        if not lost:
            return evidence_of_end(presence), False
        over = await self.is_over() or removal(presence, removal_seconds)
        return over, over is None and death_of(presence, now) is None

    async def is_over(self) -> str | None:
        """Return the evidence that the process has ended; silence is none."""
        if self.presence is not None and (evidence := evidence_of_end(self.presence)):
            return evidence
        try:
            await call(self.handle.__ray_ready__.remote(), _LOOK_SECONDS)
        except DEAD:
            with suppress(Exception):  # unknown while Ray's head is away
                node = self.node or await node_of_actor(self.handle)
                if not node:
                    return "it never ran"
                if node in await living_nodes():
                    return "Ray reports the exit of its process"
        except UNCLEAR:
            pass
        return None


async def attempt(ref: object, seconds: float = CALL_SECONDS) -> None:
    """Wait for a call to a worker; ignore its errors, which its keeper notices."""
    with suppress(*DEAD, *UNCLEAR, CuelineError):
        await call(ref, seconds)


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
            # A leaving runner offers no blueprints any more.
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
