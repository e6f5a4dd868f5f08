"""The runners that a session host can call, and the dead ones."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from zlib import crc32

import ray
from ray._private.state import state

from cueline.actors.presence import evidence_of_end, find, silent_seconds
from cueline.actors.runner import RunnerPort
from cueline.clock import SystemClock
from cueline.cluster.cluster_context import ClusterContext
from cueline.cluster.ray_call import ask_head
from cueline.cluster.remote_runner import RelayedRunner, RemoteRunner
from cueline.deciders.fleet import FleetState
from cueline.deciders.matching import Offer, considers, least_unmet, unmet
from cueline.events.agent_parts import Demands
from cueline.events.store import Presence, PresenceBoard

NEWS_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RunnerInfo:
    """The dispatcher's description of a runner for hosts, also before its process runs."""

    incarnation: str
    name: str
    """The name of its actor."""
    node: str
    """Its Ray node."""
    machine: str | None
    """The id of its machine; None until it has started."""
    takes: bool
    """Whether it accepts calls; otherwise it only reports on its current calls."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels with which it was started, which calls can demand."""
    resources: Mapping[str, float] = field(default_factory=dict)
    """Its resources, such as `gpus`, which calls can demand."""
    outside: bool = False
    """Whether it is outside of the cluster; then *name* is the name of its relay's actor."""

    @property
    def offer(self) -> Offer:
        """The runner's offer to calls."""
        return Offer(self.incarnation, self.machine, self.labels, self.resources, self.outside)


def outside_of(state: FleetState, server: str) -> dict[str, RunnerInfo]:
    """Return the registered runners outside of the cluster, behind the actor *server*."""
    return {
        name: RunnerInfo(
            incarnation=name,
            name=server,
            node="",
            machine=fact.machine,
            # One that leaves has no name any more.
            takes=bool(fact.runner) and registered.removed_at is None,
            labels=fact.group.labels,
            resources=fact.group.resources,
            outside=True,
        )
        for name, registered in state.runners.items()
        if not (fact := registered.fact).node
    }


class Directory:
    """See `RunnerDirectory`. Its data comes from the dispatcher."""

    def __init__(self, context: ClusterContext, caller: str, board: PresenceBoard) -> None:
        self._context = context
        self._caller = caller
        self._board = board
        self._runners: dict[str, RunnerInfo] = {}
        """All runners ever reported."""
        self._able: Sequence[RunnerInfo] = ()
        self._gone: dict[str, str] = {}
        self._ports: dict[str, RemoteRunner] = {}
        self._kept: dict[str, list[RemoteRunner]] = {}
        """The runners by demands that they meet, cached until the list changes."""
        self._told = asyncio.Event()

    def know(self, runners: Sequence[RunnerInfo], gone: Mapping[str, str]) -> None:
        """Set the answering *runners*, and mark *gone* as dead, with the evidence."""
        self._told.set()
        self._kept.clear()
        self._gone.update(gone)
        # An older message may arrive later: a dead runner stays dead.
        runners = [runner for runner in runners if runner.incarnation not in self._gone]
        self._able = [runner for runner in runners if runner.takes]
        self._runners.update({runner.incarnation: runner for runner in runners})
        for runner in runners:
            if runner.incarnation not in self._ports:
                kind = RelayedRunner if runner.outside else RemoteRunner
                self._ports[runner.incarnation] = kind(
                    self._context, runner.incarnation, runner.name, self._caller
                )
        for incarnation, evidence in gone.items():
            if port := self._ports.pop(incarnation, None):
                port.died = True
                port.lose(evidence)

    async def tidy(self) -> None:
        """Send the calls that runners may forget, for which a retiring runner waits."""
        await asyncio.gather(*(port.tidy() for port in self._ports.values()))

    def choose(self, demands: Demands, full: Collection[str] = ()) -> str | None:
        chosen: RemoteRunner | None = None
        for port in self._meeting(demands):
            if port.died or port.incarnation in full:
                continue
            if not port.load:
                return port.incarnation
            if chosen is None or port.load < chosen.load:
                chosen = port
        return chosen.incarnation if chosen else None

    def _meeting(self, demands: Demands) -> list[RemoteRunner]:
        """Return the runners that meet *demands*; there may be thousands, so the result is cached.

        Each host has its own order, so that not all hosts begin with the same runner.
        """
        key = demands.model_dump_json()
        if key not in self._kept:
            meeting = [
                each.incarnation
                for each in self._takes()
                if considers(each.offer, demands) and not unmet(each.offer, demands)
            ]
            meeting.sort(key=lambda incarnation: crc32(f"{self._caller} {incarnation}".encode()))
            self._kept[key] = [self._ports[incarnation] for incarnation in meeting]
        return self._kept[key]

    def unmet(self, demands: Demands) -> Demands:
        return least_unmet([runner.offer for runner in self._takes()], demands)

    def _takes(self) -> list[RunnerInfo]:
        """Return the runners that accept calls."""
        return [runner for runner in self._able if self._port(runner.incarnation)]

    def find(self, incarnation: str) -> RunnerPort | None:
        return self._port(incarnation)

    async def answers(self, incarnation: str) -> bool:
        port = self._port(incarnation)
        return port is not None and await port.answers()

    async def gone(self, incarnation: str) -> str | None:
        if incarnation in self._gone:
            return self._gone[incarnation]
        if await self._is_news(incarnation):
            return self._gone.get(incarnation)
        presence = find(await self._board.all(), incarnation)
        if presence is not None:
            return (
                evidence_of_end(presence)
                or await self._reported(incarnation)
                or removal(presence, self._context.factory.removal_seconds)
            )
        # A runner of ours may have no heartbeat yet, or may have left since.
        known = incarnation in self._ports
        return await self._reported(incarnation) if known else f"runner {incarnation} has left"

    def _port(self, incarnation: str) -> RemoteRunner | None:
        port = self._ports.get(incarnation)
        return None if port is None or port.died else port

    async def _is_news(self, incarnation: str) -> bool:
        """Wait a moment for the dispatcher's message about a death that this process has noticed.

        The message also names the next runner, which the caller needs.
        """
        port = self._ports.get(incarnation)
        if port is None or not port.died:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(NEWS_SECONDS):
                while incarnation not in self._gone:
                    self._told.clear()
                    await self._told.wait()
        return incarnation in self._gone

    async def _reported(self, incarnation: str) -> str | None:
        """Return Ray's report that the process has exited, if its node is alive."""
        port, runner = self._ports.get(incarnation), self._runners.get(incarnation)
        if port is None or runner is None or not port.died:
            return None
        if runner.node in await living_nodes():
            return f"Ray reports that the process of runner {incarnation} has exited"
        # A node that Ray declares dead may still run.
        return None


async def living_nodes() -> set[str]:
    """Return the cluster's nodes that Ray believes alive."""
    nodes = await ask_head(ray.nodes)
    return {node["NodeID"] for node in nodes if node["Alive"]}


async def leaving_nodes() -> set[str]:
    """Return the nodes that are being drained."""
    # No public call returns this; Ray's own libraries use the same method.
    return set(await ask_head(state.get_draining_nodes))


def removal(presence: Presence, removal_seconds: float) -> str | None:
    """Return the evidence that an unreachable process is dead: a long silence."""
    seconds = silent_seconds(presence, SystemClock().now())
    if seconds < removal_seconds:
        return None
    # The runner has killed its calls and ended itself long before.
    return f"runner {presence.incarnation} is silent for {seconds:.0f} s"
