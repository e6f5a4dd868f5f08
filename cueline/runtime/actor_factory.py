"""The factory of the actors of a log.

The arguments of actors are pickled: names and paths, never an open file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cueline.actors.approval_gate import ApprovalGate, GatePort
from cueline.actors.background_task import Step, Trouble
from cueline.actors.cost_ledger import CostLedger, LedgerPort
from cueline.actors.fleet_log import FleetLog
from cueline.actors.host_dependencies import HostDependencies, RunnerDirectory
from cueline.actors.presence import machine_name
from cueline.actors.runner_slots import Slots
from cueline.actors.sandbox_pool import SandboxPool, SandboxPort
from cueline.actors.session_host import SessionHost
from cueline.actors.stream_notifier import StreamNotifier
from cueline.actors.tool_port import ToolExecutor
from cueline.agents.hook import run_hook
from cueline.agents.secret import check_secrets, secret_names
from cueline.clock import SystemClock
from cueline.config.environment import HERE
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, Hook
from cueline.events.journal import Journal
from cueline.events.log_url import LogUrl
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.events.store import EventStore, PresenceBoard
from cueline.providers.mcp_logins import McpLogins
from cueline.runtime.open_log import OpenLog
from cueline.runtime.sealer import seal_steps
from cueline.runtime.work_index import ViewsIndex
from cueline.stores import MemoryPresence
from cueline.stores.backend import LogBackend, backend_of
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.sandbox import sandbox_backend
from cueline.tools.schemes import SchemeExecutor

if TYPE_CHECKING:
    from cueline.config.settings import SealSettings

_MANY_HOSTS = 64


def collaborators(
    log: OpenLog,
    runners: RunnerDirectory,
    gate: GatePort,
    ledger: LedgerPort,
    sandboxes: SandboxPort | None = None,
) -> HostDependencies:
    """Return the dependencies of a session host."""
    from cueline.providers.factory import account_names, model_factory
    from cueline.providers.prices import bound, cost_of
    from cueline.tools.arguments import check_call, read_value
    from cueline.tools.preview import preview
    from cueline.tools.recorded_tool import estimate

    async def tell(agent: AgentSpec, hook: Hook, news: bytes) -> str | None:
        return await run_hook(hook, news, HERE, hidden=secret_names(agent))

    return HostDependencies(
        clock=log.clock,
        journal=log.journal,
        check_secrets=check_secrets,
        models=model_factory(HERE, log.clock.sleep),
        runners=runners,
        fleet=FleetLog(log.journal()),
        gate=gate,
        check_call=check_call,
        read_output=read_value,
        estimate=estimate,
        preview=partial(preview, str(log.url), log.backend.files()),
        tell=tell,
        price=cost_of,
        ledger=ledger,
        bound=bound,
        grace_seconds=log.grace_seconds,
        removal_seconds=log.removal_seconds,
        slots=log.slots,
        account=account_names(HERE, salt=log.id),
        sandboxes=sandboxes,
        seal=seal_state,
        unseal=unseal_state,
    )


_STATE = "tool state"


def seal_state(state: str) -> str:
    """Return the *state* of a tool, encrypted with the master key of this machine."""
    from cueline.providers.key_store import KeyStore

    return KeyStore(HERE).master_key().seal(state.encode(), _STATE) if state else ""


def unseal_state(sealed: str) -> str:
    """Return what `seal_state` encrypted; empty if another key did, so that the tool asks again."""
    from cueline.providers.key_store import KeyStore

    try:
        return KeyStore(HERE).master_key().unseal(sealed, _STATE).decode() if sealed else ""
    except (ValueError, ConfigError):
        return ""


def tool_executor(workers: int, hidden: Sequence[Path] = ()) -> ToolExecutor:
    """Return the executor of a runner with slots for calls in so many worker processes.

    Isolated commands do not see the *hidden* files, those of the log.
    """
    # The hosts count, and each has one slot at least. A call that has started must not queue.
    return SchemeExecutor(max(workers, _MANY_HOSTS), hidden=hidden, logins=McpLogins(HERE))


def sandbox_pool(log: OpenLog, on_trouble: Trouble) -> SandboxPool:
    """Return the pool of sandboxes of *log*."""
    return SandboxPool(
        log.journal(),
        log.clock,
        sandbox_backend,
        on_trouble=on_trouble,
        slots=log.sandbox_slots,
        grace_seconds=log.sandbox_grace_seconds,
    )


@dataclass(frozen=True, slots=True)
class ActorFactory:
    """Creates the plain objects that the actors hold; it is pickled, so it holds no such object."""

    url: LogUrl
    """The log's URL, with an absolute path."""
    log_id: str
    machine: str | None
    """The machine on which the log has to be written; None for any machine."""
    grace_seconds: float
    """Time that running effects have to finish during a shutdown."""
    idle_seconds: float
    """How long a worker above the least of its range may be idle before it retires."""
    removal_seconds: float
    """The silence after which an unreachable runner counts as dead."""
    slots: Slots
    """The slots of each runner, which the hosts share."""
    sandbox_slots: int = 10
    """The number of sandboxes that may be started at a time."""
    sandbox_grace_seconds: float = 0.0
    """The time for which the sandbox of a session that waits stays started."""
    seal: "SealSettings | None" = None
    """When the log is sealed by itself; None: never."""

    @property
    def writes_anywhere(self) -> bool:
        """Whether each process writes to the log directly, without a writer actor."""
        return self.machine is None

    def log(self) -> tuple[EventStore, PresenceBoard]:
        """Open the log for writing; return the log and its presence board.

        Raises:
            LogUnavailableError: the file is not on this machine, or cannot be used.
        """
        clock = SystemClock()
        backend = backend_of(self.url)
        return backend.open(clock, must_exist=True), backend.open_presence(clock)

    def reader(self) -> EventStore | None:
        """Open the log for reading; return None if its file is on another machine."""
        backend = backend_of(self.url)
        if not self._is_here(backend):
            return None
        return backend.open(SystemClock(), read_only=True)

    def journal(self, store: EventStore) -> Journal:
        return self._log(store).journal()

    def host(
        self,
        incarnation: str,
        *,
        store: EventStore,
        board: PresenceBoard,
        runners: RunnerDirectory,
        gate: GatePort,
        ledger: LedgerPort,
        sandboxes: SandboxPort,
        on_trouble: Trouble,
    ) -> SessionHost:
        log = replace(self._log(store, board), slots=self.slots)
        dependencies = collaborators(log, runners, gate, ledger, sandboxes)
        return SessionHost(incarnation, dependencies, on_trouble=on_trouble)

    def gate(self, store: EventStore) -> ApprovalGate:
        return ApprovalGate(self.journal(store))

    def ledger(self, store: EventStore) -> CostLedger:
        return CostLedger(self.journal(store))

    def sandboxes(self, store: EventStore) -> SandboxPool:
        """Return the pool; the log has the failures of its back-ends."""
        return sandbox_pool(self._log(store), lambda *_: None)

    def seal_steps(self, store: EventStore) -> dict[str, Step]:
        """Return the loop that seals the log, by its name; none if its settings say so."""
        return seal_steps(self._log(store))

    def executor(self) -> ToolExecutor:
        return tool_executor(self.slots.workers, backend_of(self.url).files())

    async def check_tools(self, agent: AgentSpec) -> dict[str, str]:
        """Return, by name, why tools of *agent* cannot be loaded here; none of them runs."""
        tools = [tool for tool in agent.tools if tool.runs and tool.imported]
        executor = ProcessToolExecutor(1)  # the executor of a runner may be busy
        try:
            return await executor.check(tools, secret_names(agent), agent.environment)
        finally:
            await executor.close()

    def index(self, store: EventStore) -> ViewsIndex:
        return ViewsIndex(backend_of(self.url).open_views(), store)

    def _log(self, store: EventStore, board: PresenceBoard | None = None) -> OpenLog:
        clock = SystemClock()
        backend = backend_of(self.url)
        return OpenLog(
            backend=backend,
            store=store,
            notifier=StreamNotifier(store),
            board=board or MemoryPresence(clock),
            clock=clock,
            grace_seconds=self.grace_seconds,
            idle_seconds=self.idle_seconds,
            removal_seconds=self.removal_seconds,
            sandbox_slots=self.sandbox_slots,
            sandbox_grace_seconds=self.sandbox_grace_seconds,
            seal=self.seal,
            # On other machines, a resume folds the session from its first event.
            snapshots=backend.open_snapshots() if self._is_here(backend) else NO_SNAPSHOTS,
        )

    def _is_here(self, backend: LogBackend) -> bool:
        return self.machine in (None, machine_name()) and backend.exists()


def actor_factory_of(log: OpenLog) -> ActorFactory:
    """Return the factory of the actors of *log*.

    Raises:
        LogUnavailableError: no other process can write to it.
    """
    log.backend.check(shared=True)
    machine = machine_name() if log.backend.writer_place == "machine" else None
    return ActorFactory(
        log.url.absolute(),
        log.id,
        machine,
        log.grace_seconds,
        log.idle_seconds,
        log.removal_seconds,
        log.slots,
        log.sandbox_slots,
        log.sandbox_grace_seconds,
        log.seal,
    )


def namespace_of(log_id: str) -> str:
    """Return the Ray namespace of a log."""
    return f"cueline-{log_id}"
