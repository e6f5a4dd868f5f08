"""One host or runner, as its fleet sees it: what is known of it, and what it says when asked."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from cueline.actors.presence import ended
from cueline.cluster.call import DEAD, UNCLEAR, Handle, call
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.runner_directory import RunnerInfo, living_nodes
from cueline.errors import CuelineError
from cueline.events.store import Presence

CALL_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_ANSWER_SECONDS = 1.0

Role = Literal["host", "runner"]


@dataclass(slots=True, eq=False)
class Worker:
    """A host or runner of the fleet."""

    role: Role
    incarnation: str
    node: str
    handle: Handle
    presence: Presence | None = None
    """None until it has started."""
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    leaves: bool = False
    """Its node is being drained: it takes nothing more."""

    def runner_info(self, site: ClusterContext, *, lost: bool) -> RunnerInfo:
        """Return what hosts are told of a runner."""
        here = site.machine if self.node == site.node else None
        machine = here if self.presence is None else self.presence.machine
        name = site.named(self.incarnation)
        takes = not (lost or self.leaves)
        return RunnerInfo(self.incarnation, name, self.node, machine, takes)

    async def ask(self) -> None:
        """Ask whether it is silent: perhaps only its beats do not arrive."""
        if self.silent.is_set():
            return
        try:
            await call(self.handle.__ray_ready__.remote(), _ANSWER_SECONDS)
        except (*DEAD, *UNCLEAR):
            self.silent.set()

    async def is_over(self) -> str | None:
        """Return the evidence that the process has ended; silence is none."""
        if self.presence is not None and (evidence := ended(self.presence)):
            return evidence
        try:
            await call(self.handle.__ray_ready__.remote(), _LOOK_SECONDS)
        except DEAD:
            with suppress(Exception):  # while Ray's head is away, nobody knows
                if self.node in await living_nodes():
                    return "Ray reports the exit of its process"
        except UNCLEAR:
            pass
        return None


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Something about a member that others have to know."""

    what: Literal["joined", "lost", "back", "gone"]
    """Lost: it takes nothing more. Back: and it tells of what it had begun. Gone: that is over."""
    member: Worker
    evidence: str = ""


async def attempt(ref: object, seconds: float = CALL_SECONDS) -> None:
    """Wait for a call to a member that may fail: whoever keeps it finds out why."""
    with suppress(*DEAD, *UNCLEAR, CuelineError):
        await call(ref, seconds)
