"""A runner as a Ray actor."""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import ray

from cueline.actors.presence import BEAT_SECONDS, deaf_seconds, presence_of
from cueline.actors.runner import Runner
from cueline.actors.runner_desk import RunnerDesk, RunnerReply, RunnerRequest
from cueline.clock import SystemClock, boot_seconds
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.figures import runner_calls
from cueline.cluster.node_check import ToolCheck
from cueline.cluster.ray_call import EpochFence
from cueline.cluster.remote_store import log_of
from cueline.deciders.fleet import RUNNERS, Group
from cueline.deciders.matching import Offer, call_demands, unmet
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec
from cueline.events.store import Presence

LEAVE_SECONDS = 1.0
_LOOK_SECONDS = 1.0


class RunnerActor:
    """Holds a `Runner`, whose tool processes die with the actor."""

    def __init__(self, context: ClusterContext, incarnation: str, group: Group = RUNNERS) -> None:
        self.group = group
        self._context = context
        self._incarnation = incarnation
        self._orders = EpochFence(incarnation)
        self._started = asyncio.Event()
        self._runner: Runner | None = None
        self._desk: RunnerDesk
        """The callers of the runner; from the start on."""
        self._heard_at = self._beat_at = boot_seconds()

    async def start(self, epoch: int) -> Presence:
        """Accept calls from now on; a second call returns the same presence."""
        self._hear()
        self._orders.check(epoch)
        if self._runner is None:
            self.presence = replace(presence_of("runner"), incarnation=self._incarnation)
            executor = self._context.factory.executor()
            self._runner = Runner(self._incarnation, executor, boot_seconds)
            removal_seconds = self._context.factory.removal_seconds
            self._desk = RunnerDesk(self._runner, boot_seconds, removal_seconds)
            _, self._board = log_of(self._context)
            self._tasks = [asyncio.create_task(each) for each in (self._beat(), self._watch())]
            self._started.set()
        return self.presence

    async def ping(self, epoch: int, known: int, seconds: float) -> int:
        """Return the number of unsettled calls after *seconds*; fails if the actor dies.

        Returns earlier if the number becomes 0, or is no longer 0.
        """
        self._hear()
        self._orders.check(epoch)
        return await self._unsettled(lambda unsettled: bool(unsettled) != bool(known), seconds)

    async def retire(self, epoch: int, seconds: float) -> int:
        """Start no more calls; return the number of unsettled ones after *seconds*, 0 at once."""
        self._hear()
        self._orders.check(epoch)
        if self._runner is not None:
            self._runner.refuse()
        return await self._unsettled(lambda unsettled: not unsettled, seconds)

    async def _unsettled(self, is_news: Callable[[int], bool], seconds: float) -> int:
        clock, until = SystemClock(), boot_seconds() + seconds
        while True:
            unsettled = self._desk.unsettled if self._runner else 0
            if is_news(unsettled) or boot_seconds() > until:
                return unsettled
            await clock.sleep(_LOOK_SECONDS)

    async def take(self, caller: str, requests: Sequence[RunnerRequest]) -> None:
        """Start *requests*; `reports` returns their answers."""
        self._hear()
        await self._started.wait()
        self._desk.take(caller, requests)

    async def reports(
        self, caller: str, received: Sequence[int], seconds: float
    ) -> Sequence[RunnerReply]:
        """Wait for answers, and return them; the *received* ones are dropped."""
        self._hear()
        await self._started.wait()
        return await self._desk.replies(caller, received, seconds)

    async def check(self, agent: AgentSpec) -> ToolCheck:
        """Return which tools of *agent* that may run here cannot be loaded."""
        await self._started.wait()
        has = dict(self.group.labels), dict(self.group.resources)
        offer = Offer(self._incarnation, self.presence.machine, *has)
        tools = tuple(each for each in agent.tools if not unmet(offer, call_demands(each, agent)))
        problems = await self._context.factory.check_tools(
            agent.model_copy(update={"tools": tools})
        )
        return ToolCheck(ray.util.get_node_ip_address(), problems)  # type: ignore[no-untyped-call]

    async def close(self, epoch: int) -> None:
        """Kill the running calls, and record that this incarnation has ended."""
        self._orders.check(epoch)
        await self._end()

    def _hear(self) -> None:
        """Note that a caller is alive; after a silence that is too long, refuse it."""
        if self._is_deaf():
            # Requests sent before the silence must not start now: others may count this incarnation
            # as dead.
            os._exit(1)
        self._heard_at = boot_seconds()

    def _is_deaf(self) -> bool:
        # Both times: callers may reach this runner while its heartbeats, by which others judge, do
        # not arrive.
        silence = boot_seconds() - min(self._heard_at, self._beat_at)
        return silence > deaf_seconds(self._context.factory.removal_seconds)

    async def _beat(self) -> None:
        clock = SystemClock()
        while True:
            began = boot_seconds()
            with suppress(CuelineError):
                await self._board.beat(self.presence)
                self._beat_at = began
            await clock.sleep(BEAT_SECONDS)

    async def _watch(self) -> None:
        clock = SystemClock()
        while not self._is_deaf():
            runner_calls().set(self._runner.unsettled if self._runner else 0)
            await clock.sleep(_LOOK_SECONDS)
        try:
            await self._end()
        finally:
            os._exit(1)

    async def _end(self) -> None:
        if self._runner is not None:
            self._tasks[0].cancel()
            await self._runner.close()
            with suppress(CuelineError, TimeoutError):
                async with asyncio.timeout(LEAVE_SECONDS):
                    await self._board.leave(self._incarnation)
