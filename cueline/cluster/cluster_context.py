"""The place of one log's actors on a cluster: their names, and what they are made of."""

import time
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Protocol

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cueline.actors.approval_gate import ApprovalGate, GatePort
from cueline.actors.background_task import Trouble
from cueline.actors.cost_ledger import CostLedger, LedgerPort
from cueline.actors.dispatcher import WorkIndex
from cueline.actors.host_dependencies import RunnerDirectory
from cueline.actors.session_host import SessionHost
from cueline.actors.tool_port import ToolExecutor
from cueline.clock import SystemClock
from cueline.cluster.call import Handle, ask_head
from cueline.errors import ClusterError
from cueline.events.journal import Journal
from cueline.events.store import EventStore, PresenceBoard

VERSION = version("cueline")
CONCURRENCY = 20_000
"""An async actor answers nobody, not even a ping, once so many calls are parked."""
_RESOLVE_SECONDS = 0.05


class ActorFactory(Protocol):
    """Makes the plain objects that the actors hold. It is pickled, so it holds none itself."""

    @property
    def log_id(self) -> str:
        """The id of the log, wherever its file is."""
        ...

    @property
    def grace_seconds(self) -> float:
        """What is in flight may finish for so long, when everything is taken down."""
        ...

    def log(self) -> tuple[EventStore, PresenceBoard, str]:
        """Open the log where its file is, to write; return its id as well.

        Raises:
            LogUnavailableError: the file is not on this machine, or cannot be used.
        """
        ...

    def reader(self) -> EventStore | None:
        """Open the log to read, if its file is on this machine."""
        ...

    def journal(self, store: EventStore) -> Journal:
        """Return the log in facts."""
        ...

    def host(
        self,
        incarnation: str,
        *,
        store: EventStore,
        board: PresenceBoard,
        runners: RunnerDirectory,
        gate: GatePort,
        ledger: LedgerPort,
        on_trouble: Trouble,
    ) -> SessionHost:
        """Return a session host."""
        ...

    def gate(self, store: EventStore) -> ApprovalGate:
        """Return an approval gate."""
        ...

    def ledger(self, store: EventStore) -> CostLedger:
        """Return a cost ledger."""
        ...

    def executor(self) -> ToolExecutor:
        """Return what runs the tools of a runner."""
        ...

    def index(self, store: EventStore) -> WorkIndex:
        """Return the read model of who has work."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterContext:
    """Where the actors of one log live, all of one dispatcher."""

    namespace: str
    node: str
    """The Ray node on the machine with the log's file."""
    machine: str
    """That machine, as workspaces name it."""
    owner: str
    """Whose actors: `up`, or the incarnation of the command they end with."""
    detached: bool
    """Whether they outlive the process that makes them."""
    parts: ActorFactory

    def named(self, role: str) -> str:
        """Return the name of an actor that there is one of."""
        # With the version: Ray hands out a living actor of old code under its old name.
        return f"{self.owner}/{role}@{VERSION}"

    def create(
        self,
        actor: type,
        name: str,
        *arguments: object,
        node: str | None = None,
        restarts: bool = False,
    ) -> Handle:
        """Start *actor* on *node*, or else beside the log; it is there when it first answers."""
        # A hard affinity: a soft one is ignored for actors that take no CPU.
        there = NodeAffinitySchedulingStrategy(node or self.node, soft=False)
        options: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "get_if_exists": True,
            "lifetime": "detached" if self.detached else None,
            "num_cpus": 0,
            # Hosts and runners are replaced under a new incarnation, never restarted.
            "max_restarts": -1 if restarts else 0,
            # Ray cannot know whether a lost call took effect; who asked asks again by its key.
            "max_task_retries": 0,
            "max_concurrency": CONCURRENCY,
            # Ray's own record of each call grows without bound in its head process.
            "enable_task_events": False,
            "scheduling_strategy": there,
        }
        return ray.remote(actor).options(**options).remote(*arguments)

    async def find(self, name: str, within: float) -> Handle:
        """Return the actor of that name, waiting for it if need be.

        Raises:
            ClusterError: it did not come; whoever cares for it has to start it.
        """
        clock = SystemClock()
        deadline = time.monotonic() + within
        while True:
            try:
                return await ask_head(partial(ray.get_actor, name, self.namespace))
            except ValueError as error:
                if time.monotonic() > deadline:
                    raise ClusterError(name, "there is no such actor") from error
            await clock.sleep(_RESOLVE_SECONDS)
