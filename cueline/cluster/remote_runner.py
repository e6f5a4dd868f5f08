"""The client of a remote runner: many orders in one call, one long poll for all reports."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from cueline.actors.host_dependencies import REACH_SECONDS
from cueline.actors.runner import CallName, ToolReport
from cueline.actors.runner_desk import RunnerReply, RunnerRequest, Verb
from cueline.actors.tool_port import ReconcileFinding, ToolOrder
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.proxy import Outbox, Proxy
from cueline.cluster.ray_call import DEAD, UNCLEAR, call, poll, poll_seconds
from cueline.errors import ClusterError, RunnerGoneError

START_SECONDS = 30.0
"""Time from a runner's name to its first answer."""
TIDY_SECONDS = 1.0
_AGAIN_SECONDS = 0.2
_PATIENCE = 10
"""Failed polls in a row after which the runner counts as unreachable."""


class RemoteRunner(Proxy):
    """See `RunnerPort`."""

    def __init__(self, context: ClusterContext, incarnation: str, name: str, caller: str) -> None:
        super().__init__(lambda: context.find(name, START_SECONDS))
        self.incarnation = incarnation
        self.died = False
        """Whether Ray reports that the actor has ended; the directory judges this evidence."""
        self._clock = SystemClock()
        self._caller = caller
        self._numbers = 0
        self._outbox: Outbox[RunnerRequest] = Outbox(self._send)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._received: list[int] = []
        self._listening: asyncio.Task[None] | None = None
        self._knocking: asyncio.Task[bool] | None = None
        self._tidying: asyncio.TimerHandle | None = None

    @property
    def load(self) -> int:
        """The number of awaited answers."""
        return len(self._waiting)

    async def execute(self, order: ToolOrder) -> ToolReport:
        return cast("ToolReport", await self._ask("execute", order))

    async def outcome(self, name: CallName) -> ToolReport | None:
        return cast("ToolReport | None", await self._ask("outcome", name))

    async def cancel(self, name: CallName) -> None:
        await self._ask("cancel", name)

    def forget(self, name: CallName) -> None:
        """See `RunnerPort.forget`. The request is sent with the next order, or a little later."""
        self._numbers += 1
        self._outbox.add(RunnerRequest(self._numbers, "forget", name))
        if self._tidying is None:
            loop = asyncio.get_running_loop()
            self._tidying = loop.call_later(TIDY_SECONDS, self._tidy)

    async def tidy(self) -> None:
        """Send the calls that the runner may forget."""
        if not self.died:
            self._outbox.flush()
        await self._outbox.sent()

    async def reconcile(self, order: ToolOrder) -> ReconcileFinding:
        return cast("ReconcileFinding", await self._ask("reconcile", order))

    async def answers(self) -> bool:
        """Whether the runner answers a ping; concurrent callers share one ping."""
        if self._knocking is None or self._knocking.done():
            self._knocking = asyncio.create_task(self._knock())
        return await asyncio.shield(self._knocking)

    def lose(self, reason: str) -> None:
        """Fail all waiting calls: the runner cannot be reached."""
        self._give_up(list(self._waiting), reason)

    async def _ask(self, verb: Verb, about: ToolOrder | CallName) -> object:
        if self.died:
            raise RunnerGoneError(self.incarnation, "its process has ended")
        loop = asyncio.get_running_loop()
        self._numbers += 1
        number = self._numbers
        answered: asyncio.Future[object] = loop.create_future()
        self._waiting[number] = answered
        self._outbox.add(RunnerRequest(number, verb, about))
        self._outbox.flush()
        if self._listening is None or self._listening.done():
            self._listening = loop.create_task(self._listen())
        try:
            return await answered
        finally:
            self._waiting.pop(number, None)

    def _tidy(self) -> None:
        self._tidying = None
        if not self.died:
            self._outbox.flush()

    async def _send(self, requests: Sequence[RunnerRequest]) -> None:
        try:
            await self._take(requests)
        except DEAD:
            self._die()
        except (*UNCLEAR, ClusterError):
            ordered = [request.number for request in requests]
            self._give_up(ordered, "an order may not have arrived")

    async def _listen(self) -> None:
        failures = 0
        while self._waiting and failures < _PATIENCE:
            received = self._received
            try:
                reports = await self._fetch(received)
            except DEAD:
                self._die()
                return
            except (*UNCLEAR, ClusterError):
                failures += 1
                await self._clock.sleep(_AGAIN_SECONDS)
                continue
            failures = 0
            self._received = []
            self._deliver(reports)
        if failures:
            self.lose("it does not answer")

    def _deliver(self, reports: Sequence[RunnerReply]) -> None:
        for report in reports:
            self._received.append(report.number)
            answered = self._waiting.pop(report.number, None)
            if answered is not None:
                report.answer.settle(answered)

    def _give_up(self, numbers: Sequence[int], reason: str) -> None:
        for number in numbers:
            answered = self._waiting.pop(number, None)
            if answered is not None and not answered.done():
                answered.set_exception(RunnerGoneError(self.incarnation, reason))

    def _die(self) -> None:
        self.died = True
        self.lose("its process has ended")

    async def _knock(self) -> bool:
        try:
            await self._call_up()
        except DEAD:
            self._die()
        except (*UNCLEAR, ClusterError):
            pass
        else:
            return True
        return False

    async def _call_up(self) -> None:
        async with asyncio.timeout(REACH_SECONDS):
            runner = await self._found()
            await call(runner.__ray_ready__.remote(), REACH_SECONDS)

    async def _take(self, requests: Sequence[RunnerRequest]) -> None:
        runner = await self._found()
        await call(runner.take.remote(self._caller, requests), START_SECONDS)

    async def _fetch(self, received: Sequence[int]) -> Sequence[RunnerReply]:
        runner = await self._found()
        reports: Sequence[RunnerReply] = await poll(runner.reports, self._caller, received)
        return reports


class RelayedRunner(RemoteRunner):
    """A runner outside of the cluster, behind the relay of the log's server.

    While the relay is away, the runner and its calls go on: nothing is known of their end.
    """

    def __init__(self, context: ClusterContext, incarnation: str, name: str, caller: str) -> None:
        super().__init__(context, incarnation, name, caller)
        self._relay = ""

    async def _take(self, requests: Sequence[RunnerRequest]) -> None:
        relay: str = await self._ask_relay("take", START_SECONDS, self._caller, requests)
        if relay != self._relay and self._relay:
            # It is another one, which knows only of these requests.
            self.lose("the relay has started again")
        self._relay = relay

    async def _fetch(self, received: Sequence[int]) -> Sequence[RunnerReply]:
        seconds = poll_seconds()
        reports: Sequence[RunnerReply] = await self._ask_relay(
            "replies", seconds + REACH_SECONDS, self._caller, received, seconds
        )
        return reports

    async def _call_up(self) -> None:
        await self._ask_relay("check", REACH_SECONDS)

    async def _ask_relay(self, method: str, within: float, *asked: object) -> Any:
        """Return the answer of the relay.

        Raises:
            ClusterError: the relay is away, or the runner does not ask it for requests.
        """
        try:
            relay = await self._found()
            return await call(relay.relay.remote(method, self.incarnation, *asked), within)
        except (*DEAD, RunnerGoneError) as error:
            self._handle = None
            raise ClusterError(self.incarnation, str(error)) from error
