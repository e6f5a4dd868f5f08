"""The dispatcher of `cueline up` as a Ray actor: one for a log.

The dispatcher has no state of its own. After a restart by Ray it acquires the log with a
new epoch, finds its hosts and runners by their names, and continues.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

import ray

from cueline.actors.background_task import Step, start_loops
from cueline.actors.dispatcher import TICK_SECONDS, RecoveryFilter, find_orphans
from cueline.actors.fleet_log import FleetLog
from cueline.actors.presence import BEAT_SECONDS, evidence_of_end, presence_of
from cueline.actors.runner_registry import ACTOR, RunnerRegistry
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.control_loops import ControlLoops
from cueline.cluster.fleet_member import FleetNews, facts_of
from cueline.cluster.log_writer import open_log, start_writer
from cueline.cluster.ray_call import NotificationBuffer, ask_head
from cueline.cluster.remote_store import log_of
from cueline.cluster.runner_directory import outside_of
from cueline.cluster.takeover import DispatcherLease, adopted_workers, end_unused, lease_held
from cueline.deciders.fleet import HOSTS, RUNNERS, TakeFleet, group_of
from cueline.deciders.heartbeat import HEARTBEAT, HeartbeatTimes
from cueline.errors import ClusterError, CuelineError, FencedError
from cueline.events.agent import AgentSpec
from cueline.events.fleet import (
    FLEET_STREAM,
    DispatcherEvent,
    DispatcherStarted,
    DispatcherStopped,
    FleetReport,
    FleetTaken,
    RunnerRegistered,
    ScaleAsked,
)
from cueline.events.store import Presence
from cueline.events.stream import category_of, trouble_message

_KEPT = 100
"""The number of error messages that are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatcherSettings:
    """The settings of a dispatcher."""

    hosts: int | None = None
    """The number of hosts; None: the last requested number, at first 1."""
    runners: int | None = None
    """The number of runners, in the same way."""
    by: str = ""
    """The user who started it."""
    recover: bool = True
    """Whether it resumes sessions that other processes left running."""
    stays: bool = False
    """Whether it has no keeper, and stays until `down`."""
    heartbeat: HeartbeatTimes = HEARTBEAT
    """When its runners count as stale, and as gone."""
    blueprints: tuple[AgentSpec, ...] = ()
    """The blueprints of its runners."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The result of a dispatcher's start."""

    presence: Presence
    epoch: int
    found: int
    """The number of running sessions that had no driver."""


class DispatcherActor:
    """Holds a `ControlLoops`, and owns the log's dispatcher stream."""

    def __init__(
        self, context: ClusterContext, wanted: DispatcherSettings, keeper: Presence
    ) -> None:
        self._context = context
        self._wanted = wanted
        self._keeper = keeper
        self._store, self._board = log_of(context)
        self._starting: asyncio.Task[Started] | None = None
        self._loops: ControlLoops | None = None
        self._facts: asyncio.Queue[FleetReport] = asyncio.Queue()
        self._unwritten: list[FleetReport] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._untold: NotificationBuffer[str] = NotificationBuffer(_KEPT)
        if ray.get_runtime_context().was_current_actor_reconstructed:
            # After a restart without a keeper, no process would stop this one.
            self._starting = asyncio.create_task(self._start_again())

    async def gives_way(self, keeper: Presence, abandoned: str | None = None) -> bool:
        """Whether its keeper has died, so that *keeper* may replace this dispatcher.

        Args:
            keeper: the process that asks.
            abandoned: a process that died before it recorded that its dispatcher was ready; no
            process uses that dispatcher.

        Raises:
            ClusterError: the dispatcher needs no keeper, or its keeper is another living process;
            end that `up` first.
        """
        ours = self._keeper
        if keeper.incarnation == ours.incarnation:
            return False
        stays = self._wanted.stays and abandoned != ours.incarnation
        if stays or evidence_of_end(ours) is None:
            raise lease_held(ours)
        if self._loops is not None:
            await self._charge.leave()
        return True

    async def hand_over(self) -> None:
        """Stop assigning and supervising, and leave the log to a dispatcher of another version.

        The hosts and runners stay; the new dispatcher drains them.

        Raises:
            ClusterError: its keeper is alive; end that `up` first.
        """
        if not self._wanted.stays and evidence_of_end(self._keeper) is None:
            raise lease_held(self._keeper)
        for task in self._tasks:
            task.cancel()
        if self._loops is not None:
            await self._loops.stop()
            await self._charge.leave()

    async def start(self) -> Started:
        """Acquire the log and start; a second call returns the first result.

        Raises:
            ClusterError: another dispatcher has the log, or no actor starts; see the message.
        """
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def troubles(self, seconds: float) -> list[str]:
        """Return the errors since the last call, once there are any; waits up to *seconds*."""
        return await self._untold.take(seconds)

    async def stop(self, seconds: float) -> None:
        """Drain within *seconds*, stop the fleet, and record the stop."""
        for task in self._tasks:
            task.cancel()
        if self._loops is not None:
            await self._loops.drain(seconds)
            now = SystemClock().now()
            with suppress(CuelineError):
                await self._registry.leave(now)
            await self._loops.close()
            stopped = DispatcherStopped(incarnation=self.presence.incarnation, at=now)
            with suppress(CuelineError):
                await self._record([stopped])
            await self._charge.leave()

    async def _start(self) -> Started:
        self.presence = presence_of("dispatcher")
        journal = self._context.factory.journal(self._store)
        self._charge = DispatcherLease(self.presence, journal, self._board, SystemClock())
        self._fleet = FleetLog(journal)
        await self._take_charge()
        # First: later events are followed, earlier ones are looked up.
        after = await self._store.last_position()
        now, began = SystemClock().now(), await self._charge.began(self._keeper.incarnation)
        with closing(self._context.factory.index(self._store)) as index:
            left = await find_orphans(self._store, index, self._board, now=now, since=began)
        await self._supervise(None if self._wanted.recover else RecoveryFilter(left, after))
        return Started(presence=self.presence, epoch=self._charge.epoch, found=len(left))

    async def _take_charge(self) -> None:
        """Open the log for writing here, and become its dispatcher."""
        await open_log(self._context, await start_writer(self._context))
        await self._charge.take()
        started = DispatcherStarted(
            incarnation=self.presence.incarnation,
            machine=self.presence.machine,
            pid=self.presence.pid,
            epoch=self._charge.epoch,
            recover=self._wanted.recover,
            up=self._keeper.incarnation,
            at=SystemClock().now(),
        )
        await self._record([started])
        await self._fleet.record([self._taken()], ACTOR)

    def _taken(self) -> TakeFleet:
        """Return the command that takes over the fleet, with the numbers of the `up` command."""
        now, wanted = SystemClock().now(), self._wanted
        asks: list[ScaleAsked] = []
        defaults: list[ScaleAsked] = []
        for group, count in ((HOSTS, wanted.hosts), (RUNNERS, wanted.runners)):
            number = 1 if count is None else count
            ask = ScaleAsked(group=group_of(group), least=number, most=number, by=wanted.by, at=now)
            (defaults if count is None else asks).append(ask)
        taken = FleetTaken(epoch=self._charge.epoch, up=self._keeper.incarnation, at=now)
        return TakeFleet(taken, tuple(asks), tuple(defaults))

    async def _supervise(self, scope: RecoveryFilter | None) -> None:
        """Start a fleet, and drive the sessions of *scope* with it; None: all sessions."""
        self._loops = ControlLoops(
            self._context,
            self._store,
            self._board,
            epoch=self._charge.epoch,
            scope=scope,
            on_trouble=self._trouble,
            on_news=self._hear_of,
        )
        self._registry = RunnerRegistry(
            self._context.factory.journal(self._store),
            self._fleet,
            self._loops.index,
            epoch=self._charge.epoch,
            since=SystemClock().now(),
            times=self._wanted.heartbeat,
            offer=self._wanted.blueprints,
        )
        adopted = await adopted_workers(self._context, self._charge.epoch, self._board)
        await self._loops.start((await self._fleet.read()).wanted, adopted)
        steps: dict[str, Step] = {
            "recording the fleet": self._write,
            "listening to the registered runners": self._listen,
            "admitting runs": self._admit,
            "keeping the log's writer": self._keep_writer,
            "following what is wanted of the fleet": self._follow,
        }
        if scope is not None:
            place = self._loops.place
            steps["following what was left alone"] = partial(scope.follow, self._store, place)
        steps |= self._context.factory.seal_steps(self._store)
        self._tasks += start_loops(steps, clock=SystemClock(), on_trouble=self._trouble)
        self._tasks.append(asyncio.create_task(self._end_former()))

    async def _keep_writer(self) -> None:
        """Start the log's writer again after its machine was away, because Ray does not."""
        await open_log(self._context, await start_writer(self._context))
        clock = SystemClock()
        await clock.sleep(BEAT_SECONDS)

    async def _start_again(self) -> Started:
        clock = SystemClock()
        try:
            return await self._start()
        except Exception as error:  # noqa: BLE001 - after giving up it would live on and supervise nothing
            print(error, file=sys.stderr, flush=True)  # noqa: T201 - into Ray's log of this process
            await clock.sleep(BEAT_SECONDS)
            # With everything that it started: Ray starts another, which begins anew.
            os._exit(1)

    async def _end_former(self) -> None:
        """End the actors of other versions once their hosts and runners have ended.

        Until then these hosts need their writer, gate and ledger.
        """
        clock = SystemClock()
        ended = False
        while not ended:
            with suppress(Exception):  # while Ray's head is away: the next look does it
                ended = await ask_head(partial(end_unused, self._context))
            await clock.sleep(BEAT_SECONDS)

    def _trouble(self, stream: str, error: CuelineError) -> None:
        message = trouble_message(stream, error)
        self._untold.add(message)
        if self._wanted.stays:
            # No program takes the messages: they go into Ray's log of this process.
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - see above

    def _hear_of(self, news: FleetNews) -> None:
        for fact in facts_of(news, self._charge.epoch, SystemClock().now()):
            self._facts.put_nowait(fact)

    async def _follow(self) -> None:
        """Keep the fleet at the desired numbers from the log, until an error."""
        after = await self._store.last_position()
        await self._want()
        async for _ in self._store.follow(after, {category_of(FLEET_STREAM)}):
            await self._want()

    async def _want(self) -> None:
        assert self._loops is not None, "it follows what it has started"
        state = await self._fleet.read()
        self._loops.fleet.want(state.wanted)
        if self._loops.fleet.know(outside_of(state, self._context.named("server"))):
            self._loops.look_again()

    async def _admit(self) -> None:
        clock = SystemClock()
        await self._registry.admit()
        await clock.sleep(TICK_SECONDS)

    async def _listen(self) -> None:
        clock = SystemClock()
        try:
            changed = await self._registry.tick(await self._board.all(), clock.now())
        except FencedError:
            os._exit(1)
        for fact in changed:
            if fact.type == "RunnerStale":
                reason = f"{fact.reason}: it gets no more runs"
                self._trouble("the fleet", ClusterError(fact.incarnation, reason))
        await clock.sleep(self._wanted.heartbeat.interval)

    async def _write(self) -> None:
        if not self._unwritten:
            self._unwritten = [await self._facts.get()]
            while not self._facts.empty():
                self._unwritten.append(self._facts.get_nowait())
        try:
            await self._registry.record(self._unwritten)
        except FencedError:
            # The successor has the fleet already: end nothing of it.
            os._exit(1)
        if any(isinstance(fact, RunnerRegistered) for fact in self._unwritten):
            # Runs wait for that; the log may not be followed yet.
            assert self._loops is not None, "they told it of the runner"
            self._loops.look_again()
        self._unwritten = []

    async def _record(self, facts: Sequence[DispatcherEvent]) -> None:
        """Append *facts*; end this dispatcher if a successor has the log."""
        try:
            await self._charge.record(facts)
        except FencedError:
            os._exit(1)
