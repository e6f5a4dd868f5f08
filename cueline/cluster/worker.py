"""One host or runner of a fleet, and its state."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from cueline.actors.presence import evidence_of_end
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.placement import node_of_actor
from cueline.cluster.runner_directory import RunnerInfo, living_nodes
from cueline.deciders.fleet import Group
from cueline.deciders.reconcile import takes
from cueline.errors import CuelineError
from cueline.events.fleet import WorkerKind
from cueline.events.store import Presence

CALL_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_ANSWER_SECONDS = 1.0


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
    """The number of calls that a runner has not settled, when it was last asked."""
    pending: bool = False
    """Whether it waits for a node that can hold it."""
    name: str = ""
    """Of its actor, where another version has named it."""
    leaves: str = ""
    """Why it accepts nothing more: it is being retired, its node is drained, or has no room."""

    @property
    def role(self) -> WorkerKind:
        """Whether it is a host or a runner."""
        return self.group.kind

    def runner_info(self, site: ClusterContext, *, lost: bool) -> RunnerInfo:
        """Return the description of a runner for hosts."""
        here = site.machine if self.node == site.node else None
        machine = here if self.presence is None else self.presence.machine
        name = self.name or site.named(self.incarnation)
        return RunnerInfo(
            self.incarnation,
            name,
            self.node,
            machine,
            not (lost or self.leaves),
            dict(self.group.labels),
            takes(self.group),
        )

    async def ask(self) -> None:
        """Ping a silent worker: perhaps only its heartbeats do not arrive."""
        if self.silent.is_set():
            return
        try:
            await call(self.handle.__ray_ready__.remote(), _ANSWER_SECONDS)
        except (*DEAD, *UNCLEAR):
            self.silent.set()

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
    """Wait for a call to a worker; ignore its errors, which its keeper finds by itself."""
    with suppress(*DEAD, *UNCLEAR, CuelineError):
        await call(ref, seconds)
