"""A host or runner of the fleet: its calls, when it is lost, and what is recorded of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import ray

from cueline.actors.background_task import Trouble
from cueline.actors.presence import deaf_seconds, death_of, evidence_of_end
from cueline.actors.runner_registry import RUNNER
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.placement import is_pending, node_of_actor
from cueline.cluster.ray_call import DEAD, UNCLEAR, Handle, call, poll
from cueline.cluster.runner_directory import RunnerInfo, living_nodes, removal
from cueline.deciders.fleet import group_of
from cueline.deciders.fleet_worker import Answers, Ends, Fact, Silent, What, WorkerState
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
class FleetMember:
    """A host or runner of the fleet, lost ones included."""

    incarnation: str
    handle: Handle
    state: WorkerState
    presence: Presence | None = None
    """None until it has started."""
    name: str = ""
    """The name of its actor, if another version has named it."""
    silence: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it does not answer."""

    @property
    def role(self) -> WorkerKind:
        """Whether it is a host or a runner."""
        return self.state.group.kind

    def runner_info(self, context: ClusterContext) -> RunnerInfo:
        """Return the description of a runner for hosts."""
        state = self.state
        here = context.machine if state.node == context.node else None
        return RunnerInfo(
            self.incarnation,
            self.name or context.named(self.incarnation),
            state.node,
            here if self.presence is None else self.presence.machine,
            state.counts,
            dict(state.group.labels),
            takes(state.group),
        )

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
                if not await is_pending(self.handle, self.state.group):
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"no answer within {START_SECONDS:.0f} s")
                    continue
                deadline = time.monotonic() + START_SECONDS
                if self.state.phase != "pending":
                    await wait()
        finally:
            with_answer.cancel()

    async def until_lost(
        self,
        context: ClusterContext,
        epoch: int,
        on_trouble: Trouble,
        on_calls: Callable[[int], object],
    ) -> str:
        """Wait until the worker ends or is silent, and return the evidence.

        *on_trouble* gets the errors of a host, and *on_calls* the number of calls of a runner.
        """
        # These calls show the worker that its dispatcher lives.
        often = deaf_seconds(context.factory.removal_seconds) / 2
        silence = asyncio.create_task(self.silence.wait())
        watching = asyncio.create_task(self._until_end(epoch, often, on_trouble, on_calls))
        try:
            await asyncio.wait({silence, watching}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            silence.cancel()
            watching.cancel()
        return watching.result() if watching.done() else "it is silent"

    async def _until_end(
        self, epoch: int, often: float, on_trouble: Trouble, on_calls: Callable[[int], object]
    ) -> str:
        """Keep one call open: it fails within milliseconds of the worker's death."""
        clock = SystemClock()
        while True:
            try:
                if self.role == "host":
                    for stream, error in await poll(self.handle.troubles, at_most=often):
                        on_trouble(stream, error)
                else:
                    on_calls(await poll(self.handle.ping, epoch, self.state.load, at_most=often))
            except DEAD:
                return "Ray reports the exit of its process"
            except (*UNCLEAR, ClusterError):
                if self.presence is not None and (evidence := evidence_of_end(self.presence)):
                    return evidence
                await clock.sleep(AGAIN_SECONDS)

    async def run_out(self, epoch: int) -> None:
        """Let a runner start no more calls, and wait until its last outcome is fetched."""
        clock, running = SystemClock(), 1
        while running and self.state.is_known:
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

    async def is_silent(self) -> Fact | None:
        """Ping the worker, whose heartbeats alone may be lost."""
        try:
            await call(self.handle.__ray_ready__.remote(), _ANSWER_SECONDS)
        except (*DEAD, *UNCLEAR):
            return Silent()
        return None

    async def fate(
        self, presence: Presence | None, now: datetime, removal_seconds: float
    ) -> Fact | None:
        """Return whether the unreachable worker has ended or answers again, if that is known.

        The sessions of a runner's calls wait for this; a host's sessions already run elsewhere.
        *presence* is its current entry on the board.
        """
        lost = self.state.silent or self.presence is None
        self.presence = self.presence or presence
        if self.presence is None:
            # The worker has not started: it was killed for that, or the wait was too long.
            over = await self.is_over()
        elif presence is None:
            # The worker had registered once: if it is not on the board, it has left.
            over = f"{self.role} {self.incarnation} has left"
        elif not lost:
            over = evidence_of_end(presence)
        else:
            over = await self.is_over() or removal(presence, removal_seconds)
            if over is None and death_of(presence, now) is None:
                return Answers()
        return None if over is None else Ends(over)

    async def is_over(self) -> str | None:
        """Return the evidence that the process has ended; silence is none."""
        if self.presence is not None and (evidence := evidence_of_end(self.presence)):
            return evidence
        try:
            await call(self.handle.__ray_ready__.remote(), _LOOK_SECONDS)
        except DEAD:
            with suppress(Exception):  # unknown while Ray's head is away
                node = self.state.node or await node_of_actor(self.handle)
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

    what: What
    member: FleetMember
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class NodeLeaves:
    """A node is being drained."""

    node: str


FleetNews = WorkerEvent | NodeLeaves | Report


def facts_of(news: FleetNews, epoch: int, now: datetime) -> Iterator[FleetReport]:
    """Return the facts to record about *news*."""
    when: dict[str, Any] = {"epoch": epoch, "at": now}
    match news:
        case NodeLeaves(node):
            yield NodeDraining(node=node, **when)
        case Report(group, count):
            yield WorkersPending(group=group_of(group), count=count, **when)
        case WorkerEvent(
            "joined" | "leaves", FleetMember(presence=Presence() as presence) as member
        ):
            said: dict[str, Any] = {
                "incarnation": member.incarnation,
                "group": group_of(member.state.group),
                "machine": presence.machine,
                "node": member.state.node,
                "pid": presence.pid,
                **when,
            }
            # A leaving runner offers no blueprints any more.
            runner = "" if member.state.leaves else RUNNER
            is_host = member.role == "host"
            yield HostJoined(**said) if is_host else RunnerRegistered(runner=runner, **said)
        case WorkerEvent(_, FleetMember(role="host") as member, reason):
            yield HostLost(incarnation=member.incarnation, reason=reason, **when)
        case WorkerEvent("gone", member, reason):
            graceful = bool(member.state.leaves)
            name = member.incarnation
            yield RunnerRemoved(incarnation=name, reason=reason, graceful=graceful, **when)
        case WorkerEvent():
            pass  # a runner that is silent is registered until its heartbeats are missed
