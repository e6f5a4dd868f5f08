"""The facts of a log's fleet, stream `fleet-<tenant>/main`, and of its dispatchers.

Nobody owns it: every append is a compare-and-set on its version. Anybody may ask for
another number of workers. The facts of a dispatcher carry its epoch, and those of a
former dispatcher are refused.

`at` is the writer's own clock, for people. No rule reads it.

`at` is the dispatcher's own clock, for people: with `recorded_at`, the log's clock,
it shows the difference of the two. No rule reads it.
"""

from operator import not_
from typing import Final, Literal

from pydantic import AwareDatetime, Field

from cueline.events.agent import AgentSpec
from cueline.events.fact import Fact, Part
from cueline.events.stream import stream_name

FLEET_STREAM = stream_name("fleet", "main")

WorkerKind = Literal["host", "runner"]
CLUSTER: Final = "cluster"
"""Who has the names of cueline's own agents."""


class WorkerGroup(Part):
    """Workers that are alike, and so are counted together."""

    kind: WorkerKind
    labels: dict[str, str] = Field(default_factory=dict, exclude_if=not_)
    """Ray's labels of the nodes that they run on; calls can demand them of a runner."""
    resources: dict[str, float] = Field(default_factory=dict, exclude_if=not_)
    """What each takes of its node: `cpus`, `gpus`, `memory` in bytes, or a resource of Ray's."""
    per_node: int | None = Field(default=None, exclude_if=not_)
    """The most on one node; None: as many as it holds."""


class ScaleAsked(Fact):
    """Somebody asked for another number of workers of a group."""

    type: Literal["ScaleAsked"] = "ScaleAsked"
    group: WorkerGroup
    least: int
    """So many always run."""
    most: int
    """The most; those above *least* start when work waits for them, and retire when idle."""
    by: str
    at: AwareDatetime


class FleetTaken(Fact):
    """A dispatcher took over the fleet: it records which workers it found, and starts the rest."""

    type: Literal["FleetTaken"] = "FleetTaken"
    epoch: int
    up: str
    """The id of its `up`; the same after each restart of the dispatcher."""
    at: AwareDatetime


class HostJoined(Fact):
    """A host accepts sessions."""

    type: Literal["HostJoined"] = "HostJoined"
    incarnation: str
    group: WorkerGroup
    machine: str
    node: str
    """Its Ray node."""
    pid: int
    epoch: int
    at: AwareDatetime


class HostLost(Fact):
    """A host ended or is silent; its sessions go to others."""

    type: Literal["HostLost"] = "HostLost"
    incarnation: str
    reason: str
    epoch: int
    at: AwareDatetime


class RunnerRegistered(Fact):
    """A runner accepts calls, and runs of its blueprints; it replaces what it registered before."""

    type: Literal["RunnerRegistered"] = "RunnerRegistered"
    incarnation: str
    runner: str = Field(default="", exclude_if=not_)
    """Its name: a new incarnation takes over the blueprints of a stale one of the same name."""
    blueprints: tuple[AgentSpec, ...] = Field(default=(), exclude_if=not_)
    """The agents that it offers, each by its own name."""
    group: WorkerGroup
    machine: str
    node: str
    """Its Ray node."""
    pid: int
    epoch: int
    at: AwareDatetime


class RunnerStale(Fact):
    """A runner is silent: it gets no more runs, and may still finish those that it has."""

    type: Literal["RunnerStale"] = "RunnerStale"
    incarnation: str
    reason: str
    removed_at: AwareDatetime
    """When it is removed, unless it is heard before."""
    epoch: int
    at: AwareDatetime


class RunnerBack(Fact):
    """A stale runner is heard again, and gets runs."""

    type: Literal["RunnerBack"] = "RunnerBack"
    incarnation: str
    epoch: int
    at: AwareDatetime


class RunnerRemoved(Fact):
    """A runner is gone, and its blueprints with it: its unfinished calls are lost or in doubt."""

    type: Literal["RunnerRemoved"] = "RunnerRemoved"
    incarnation: str
    reason: str
    graceful: bool = Field(default=False, exclude_if=not_)
    """It left by itself, or was retired: its runs are queued again where that is harmless."""
    epoch: int
    at: AwareDatetime


class NodeDraining(Fact):
    """A node is about to leave the cluster; the workers on it move to others."""

    type: Literal["NodeDraining"] = "NodeDraining"
    node: str
    epoch: int
    at: AwareDatetime


class WorkersPending(Fact):
    """So many workers of a group wait for a node that can hold them; 0: none any more."""

    type: Literal["WorkersPending"] = "WorkersPending"
    group: WorkerGroup
    count: int
    epoch: int
    at: AwareDatetime


FleetReport = (
    FleetTaken
    | HostJoined
    | HostLost
    | RunnerRegistered
    | RunnerStale
    | RunnerBack
    | RunnerRemoved
    | NodeDraining
    | WorkersPending
)
"""What a dispatcher records."""
FleetEvent = ScaleAsked | FleetReport


class DispatcherStarted(Fact):
    """A dispatcher acquired the log; its epoch is in every order."""

    type: Literal["DispatcherStarted"] = "DispatcherStarted"
    incarnation: str
    machine: str
    pid: int
    epoch: int
    recover: bool
    """Whether it resumes the sessions that others left."""
    up: str = ""
    """The id of its `up`; the same after each restart of the dispatcher."""
    at: AwareDatetime


class DispatcherStopped(Fact):
    """A dispatcher ended on purpose."""

    type: Literal["DispatcherStopped"] = "DispatcherStopped"
    incarnation: str
    at: AwareDatetime


DispatcherEvent = DispatcherStarted | DispatcherStopped
