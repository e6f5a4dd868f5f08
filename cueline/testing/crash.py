"""Kills a whole cueline at a chosen point, and continues with another on the same log.

A `World` has all parts that die with a process: host, runner, gate and dispatcher,
run inline. It reaches the `Outside` only through ports that its `CrashPoint` guards. At
the chosen point, before or after an append, a tool's effect or an answer of a model,
the ports go dead: each call of a port then waits without end. So code of the killed
world that still runs, a `finally` too, has no effect. The `Outside` is left: the log,
the clock, and the effects of tools. A new `World` on it is the next process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import cast

from pydantic import JsonValue, SecretStr

from cueline.actors.approval_gate import ApprovalGate, GatePort
from cueline.actors.background_task import GRACE_SECONDS, start_loops
from cueline.actors.cost_ledger import CostLedger, LedgerPort
from cueline.actors.dispatcher import Dispatcher
from cueline.actors.fleet_log import FleetLog
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.inbox import ask_start, post
from cueline.actors.model_port import Model
from cueline.actors.presence import REMOVAL_SECONDS
from cueline.actors.runner import Runner, RunnerPort
from cueline.actors.runner_slots import Slots
from cueline.actors.session_host import HostPort, SessionHost
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SessionState, evolve, session_of
from cueline.errors import CuelineError
from cueline.events.agent import AgentSpec, Hook, ToolSpec
from cueline.events.codec import Codec
from cueline.events.inbox import InboxMessage, StartAsked
from cueline.events.journal import Journal
from cueline.events.message import Cost, Estimate, Usage
from cueline.events.sanitize import Redactor
from cueline.events.session import SessionEvent
from cueline.events.snapshot import SnapshotStore
from cueline.events.store import EventStore, Presence
from cueline.stores import MemorySnapshots, MemoryStore
from cueline.testing.clock import FakeClock
from cueline.testing.crash_point import CrashingExecutor, CrashingModel, CrashingStore, CrashPoint
from cueline.testing.fakes import FoldedIndex, JournalingExecutor, Runners
from cueline.tools.arguments import read_value

__all__ = ["CrashPoint", "Outside", "World"]

_numbers = count(1)


class Board:
    """The living processes, as a test defines them; see `PresenceBoard`."""

    def __init__(self) -> None:
        self.present: dict[str, Presence] = {}

    async def beat(self, presence: Presence) -> None:
        self.present[presence.incarnation] = presence

    async def leave(self, incarnation: str) -> None:
        self.present.pop(incarnation, None)

    async def all(self) -> Sequence[Presence]:
        return list(self.present.values())

    async def close(self) -> None:
        """See `PresenceBoard.close`."""


async def nobody_estimates(_tool: ToolSpec, _arguments: Mapping[str, JsonValue]) -> Estimate:
    """Estimate no cost of a call."""
    return Estimate(problem="nobody estimates here")


async def notify_nobody(_agent: AgentSpec, _hook: Hook, _news: bytes) -> str | None:
    """Send no notification."""
    return "nobody runs hooks here"


@dataclass(slots=True)
class Outside:
    """Everything that outlives a process: the log, the clock, and the effects of tools."""

    clock: FakeClock
    store: EventStore
    model: Model
    executor: JournalingExecutor
    runners: Runners = field(default_factory=Runners)
    board: Board = field(default_factory=Board)
    secrets: Sequence[str] = ()
    check_call: Callable[[ToolSpec, Mapping[str, JsonValue]], str | None] = lambda *_: None
    estimate: Callable[[ToolSpec, Mapping[str, JsonValue]], Awaitable[Estimate]] = nobody_estimates
    price: Callable[[AgentSpec, str, Usage], Cost | None] = lambda *_: None
    bound: Callable[[AgentSpec, int, int | None], tuple[int, Decimal | None]] = (
        lambda _agent, sent, _counted: (sent, None)
    )
    check_secrets: Callable[[AgentSpec, Collection[str]], None] = lambda *_: None
    tell: Callable[[AgentSpec, Hook, bytes], Awaitable[str | None]] = notify_nobody
    snapshots: SnapshotStore = field(default_factory=lambda: MemorySnapshots(every=0))
    """The snapshots, one whenever a session rests."""
    ledger: LedgerPort | None = None
    """A ledger in a process of its own; None: each world has its own ledger."""

    @classmethod
    def new(
        cls, model: Model, executor: JournalingExecutor, secrets: Sequence[str] = ()
    ) -> "Outside":
        """Return a fresh one, with a log in memory."""
        clock = FakeClock()
        return cls(clock, MemoryStore(clock), model, executor, secrets=secrets)

    @property
    def redactor(self) -> Redactor:
        """The redactor of its secrets."""
        return Redactor(map(SecretStr, self.secrets))

    @property
    def journal(self) -> Journal:
        """The log in facts."""
        return self.journal_on(self.store)

    def journal_on(self, store: EventStore) -> Journal:
        """Return *store* in facts."""
        return Journal(store, Codec(self.redactor), self.clock.now, self.snapshots)

    async def start(
        self, name: str, agent: AgentSpec, goal: str | None = "go", **fields: object
    ) -> str:
        """Request a session, and return its stream."""
        asked = StartAsked.model_validate(
            {"agent": agent, "goal": goal, "asked_at": self.clock.now(), **fields}
        )
        return await ask_start(self.journal, name, asked)

    async def say(self, stream: str, *messages: InboxMessage) -> None:
        """Put *messages* into the session's inbox."""
        for message in messages:
            await post(self.journal, stream, message)

    async def facts(self, stream: str) -> list[SessionEvent]:
        """Return the facts of a stream."""
        return [fact async for _, fact in self.journal.read(stream)]  # type: ignore[misc]  # who erases nothing reads facts only

    async def types(self, stream: str) -> list[str]:
        """Return the types of the facts of a stream."""
        return [fact.type for fact in await self.facts(stream)]

    async def state(self, stream: str) -> SessionState:
        """Return the state of the session, folded from the log."""
        state = session_of(stream)
        for fact in await self.facts(stream):
            state = evolve(state, fact)
        return state

    async def transcript(self, stream: str) -> list[bytes]:
        """Return the messages of the session's prompt."""
        prompt = Prompt()
        for fact in await self.facts(stream):
            prompt.add(fact)
        return prompt.transcript


class World:
    """The parts of cueline that die with one process, on an `Outside`; see `HostDirectory`."""

    def __init__(
        self,
        outside: Outside,
        life: CrashPoint | None = None,
        *,
        runner: RunnerPort | None = None,
        gate: GatePort | None = None,
        scope: Collection[str] | None = None,
        name: str | None = None,
        slots: Slots | None = None,
    ) -> None:
        self.name = name or f"inline-{next(_numbers)}"
        self.life = life or CrashPoint()
        self.outside = outside
        self.store = CrashingStore(outside.store, self.life)
        self.troubles: list[tuple[str, CuelineError]] = []
        clock = outside.clock
        journal = outside.journal_on(self.store)
        if runner is None:
            executor = CrashingExecutor(outside.executor, self.life)
            self.runner: RunnerPort = Runner(self.name, executor, lambda: clock.now().timestamp())
            outside.runners.ports[self.name] = self.runner
        else:
            self.runner = runner
        self.host = SessionHost(
            self.name,
            HostDependencies(
                clock=clock,
                journal=lambda _: journal,
                check_secrets=outside.check_secrets,
                models=lambda _: CrashingModel(outside.model, self.life),
                runners=outside.runners,
                fleet=FleetLog(journal),
                gate=gate or ApprovalGate(journal),
                check_call=outside.check_call,
                read_output=read_value,
                estimate=outside.estimate,
                price=outside.price,
                ledger=outside.ledger or CostLedger(journal),
                bound=outside.bound,
                tell=outside.tell,
                preview=lambda *_: "",
                grace_seconds=GRACE_SECONDS,
                removal_seconds=REMOVAL_SECONDS,
                account=lambda _: "",
                slots=slots or Slots(),
            ),
            on_trouble=self._hear,
        )
        self.dispatcher = Dispatcher(
            store=self.store,
            index=FoldedIndex(outside.journal),
            fleet=self,
            board=outside.board,
            clock=clock,
            scope=scope,
        )
        self._before = asyncio.all_tasks()
        follow = {"following the log": self.dispatcher.follow}
        (self._following,) = start_loops(follow, clock=clock, on_trouble=self._hear)

    async def hosts(self) -> dict[str, HostPort]:
        return {self.name: self.host}

    def _hear(self, what: str, error: CuelineError) -> None:
        self.troubles.append((what, error))

    async def rest(self, within: float = 0.0) -> None:
        """Run until all sessions rest, or the world is dead; up to *within* seconds may pass.

        Raises:
            AssertionError: a session neither rests nor continues.
        """
        clock = self.outside.clock
        until = clock.now() + timedelta(seconds=within)
        while not self.life.dead:
            looking = asyncio.create_task(self.dispatcher.tick())
            await clock.settle()
            if looking.done() and not await self.host.active():
                return
            moment = clock.next_at
            if not self.life.dead:
                assert moment is not None, f"{await self.host.active()}: nothing happens any more"
                assert moment <= until, f"{await self.host.active()}: not within {within} s"
                await clock.advance((moment - clock.now()).total_seconds())

    async def kill(self) -> None:
        """Kill the world now, if it lives: nothing in it has an effect after this."""
        self.life.dead = True
        owned = self.outside.runners.ports.pop(self.name, None)
        if owned is not None:
            self.outside.runners.dead[self.name] = f"process {self.name} has ended"
        mine = {
            task for task in asyncio.all_tasks() - self._before if owned or not _of_runner(task)
        }
        mine.discard(cast("asyncio.Task[object]", asyncio.current_task()))
        # A cancelled task may still call a port, to report its end: it waits there for ever.
        while left := [task for task in mine if not task.done()]:
            for task in left:
                task.cancel()
            await self.outside.clock.settle()
        await asyncio.gather(*mine, return_exceptions=True)


def _of_runner(task: asyncio.Task[object]) -> bool:
    return getattr(task.get_coro(), "__qualname__", "").startswith("Runner.")
