"""Runs all actors in one process, for sessions without a cluster."""

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import replace

from cueline.actors.approval_gate import ApprovalGate
from cueline.actors.background_task import Trouble, shielded, start_loops
from cueline.actors.cost_ledger import CostLedger
from cueline.actors.dispatcher import TICK_SECONDS, Dispatcher, WorkIndex
from cueline.actors.live_text import LiveTextHub, LiveTextServer
from cueline.actors.presence import beat_always, evidence_of_end, find, presence_of
from cueline.actors.runner import Runner, RunnerPort
from cueline.actors.session_host import HostPort, SessionHost
from cueline.actors.tool_port import ToolExecutor
from cueline.config.environment import HERE
from cueline.deciders.matching import Offer, unmet
from cueline.errors import CuelineError
from cueline.events.agent_parts import Demands
from cueline.events.store import Presence, PresenceBoard
from cueline.providers.mcp_logins import McpLogins
from cueline.runtime.actor_factory import collaborators, sandbox_pool
from cueline.runtime.open_log import OpenLog
from cueline.runtime.place import Place
from cueline.runtime.work_index import ViewsIndex
from cueline.tools.schemes import SchemeExecutor


class LocalRunnerDirectory:
    """Finds the runner of this process, and evidence about other runners; see `RunnerDirectory`."""

    def __init__(self, runner: Runner, presence: Presence, board: PresenceBoard) -> None:
        self._runner = runner
        self._presence = presence
        self._board = board
        self._offer = Offer(presence.incarnation, presence.machine)
        self.out_of_reach: set[str] = set()
        """The requested runners that live, but are frozen or belong to another process."""

    def choose(self, demands: Demands, full: Collection[str] = ()) -> str | None:
        """See `RunnerDirectory.choose`; the runner offers this machine, no labels, no resources."""
        if self._runner.incarnation in full or self.unmet(demands):
            return None
        return self._runner.incarnation

    def unmet(self, demands: Demands) -> Demands:
        return unmet(self._offer, demands)

    def find(self, incarnation: str) -> RunnerPort | None:
        return self._runner if incarnation == self._runner.incarnation else None

    async def answers(self, incarnation: str) -> bool:
        return self.find(incarnation) is not None

    async def gone(self, incarnation: str) -> str | None:
        if incarnation == self._runner.incarnation:
            return None
        presence = find(await self._board.all(), incarnation)
        over = f"runner {incarnation} has left" if presence is None else evidence_of_end(presence)
        if over is None:
            self.out_of_reach.add(incarnation)
        return over

    async def ended(self) -> set[str]:
        """Return the runners that were unreachable and have ended since."""
        return {each for each in tuple(self.out_of_reach) if await self.gone(each) is not None}


class LocalHostDirectory:
    """Finds the only host of an inline process; see `HostDirectory`."""

    def __init__(self, host: SessionHost) -> None:
        self._host = host

    async def hosts(self) -> dict[str, HostPort]:
        return {self._host.incarnation: self._host}


class Inline(Place):
    """All actors in this process."""

    drives = True

    def __init__(
        self,
        log: OpenLog,
        executor: ToolExecutor,
        index: WorkIndex,
        live_text: LiveTextHub,
        *,
        on_trouble: Trouble | None,
        scope: set[str] | None,
    ) -> None:
        super().__init__(log.url, scope, on_trouble)
        self.presence = presence_of("inline")
        self.log = log
        loop_time = asyncio.get_running_loop().time
        self._runner = Runner(self.presence.incarnation, executor, loop_time)
        self._runners = runners = LocalRunnerDirectory(self._runner, self.presence, log.board)
        gate = ApprovalGate(log.journal())
        ledger = CostLedger(log.journal())
        self._sandboxes = sandbox_pool(log, self.hear)
        self.host = SessionHost(
            self.presence.incarnation,
            replace(
                collaborators(log, runners, gate, ledger, self._sandboxes), live_text=live_text
            ),
            on_trouble=self.hear,
        )
        self.live_text = self.host.live_text
        self.dispatcher = Dispatcher(
            store=log.store,
            index=index,
            fleet=LocalHostDirectory(self.host),
            board=log.board,
            clock=log.clock,
            scope=scope,
        )
        self._live_text_server = LiveTextServer(self.host.live_text)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Register this process, and look for work."""
        if self.log.backend.writer_place != "process":  # otherwise no other process can watch
            await self._live_text_server.start()
        self.presence = replace(
            self.presence,
            address=self._live_text_server.address,
            token=self._live_text_server.token,
        )
        await self.log.board.beat(self.presence)
        await self._sandboxes.watch()
        # In this order: a tick before the log is followed would have to be repeated.
        steps = {
            "following the log": self.dispatcher.follow,
            "looking for work": self._look,
        }
        self._tasks = [
            asyncio.create_task(beat_always(self.log.board, self.presence, self.log.clock)),
            *start_loops(steps, clock=self.log.clock, on_trouble=self.hear),
        ]

    async def place(self, streams: Collection[str]) -> None:
        await self.dispatcher.place(streams)

    def has(self, incarnation: str | None) -> bool:
        return incarnation == self.presence.incarnation

    def settled(self, stream: str) -> Coroutine[object, object, None] | None:
        return self.host.settled(stream) if self.host.drives(stream) else None

    async def close(self) -> None:
        """Stop at once; the next owner recovers running effects by their keys."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.host.close()
        await self._sandboxes.close()
        await self._live_text_server.close()
        await self._runner.close()
        with suppress(CuelineError):
            await self.log.board.leave(self.presence.incarnation)

    async def _look(self) -> None:
        await self.dispatcher.tick()
        if ended := await self._runners.ended():
            # The sessions that wait for these runners would wait until a late deadline.
            await self.dispatcher.wake("runner")
            self._runners.out_of_reach -= ended
        await self.log.clock.sleep(TICK_SECONDS)


@asynccontextmanager
async def inline(
    log: OpenLog, *, scope: set[str] | None, on_trouble: Trouble | None = None
) -> AsyncIterator[Inline]:
    """Drive the sessions of *scope* in this process; None for all sessions without a driver."""
    with closing(ViewsIndex(log.backend.open_views(), log.store)) as index:
        live_text = LiveTextHub()
        hidden, logins = log.backend.files(), McpLogins(HERE)
        executor = SchemeExecutor(log.slots.workers, live_text.report, hidden=hidden, logins=logins)
        here = Inline(log, executor, index, live_text, on_trouble=on_trouble, scope=scope)
        try:
            await here.start()
            yield here
        finally:
            await shielded(here.close())


async def drive_to_end(log: OpenLog, stream: str) -> None:
    """Drive the stopping session *stream*, which has no driver, until it has ended.

    No effect starts in it, so no key, tool, secret or workspace is needed.

    Raises:
        CuelineError: the session cannot be driven; the message says why.
    """
    async with inline(log, scope={stream}) as here:
        await here.place([stream])
        await here.host.settled(stream)
    if (trouble := here.trouble(stream)) is not None:
        raise trouble
