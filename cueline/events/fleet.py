"""The facts of a log's fleet, stream `fleet-<tenant>/main`, and of its dispatchers.

The stream has no owner: every append is a compare-and-set on its version. Any process
may request another number of workers. The facts of a dispatcher have the dispatcher's epoch,
and facts of a former dispatcher are refused.

`at` is the clock of the process that wrote the fact, for people. The difference between `at` and
`recorded_at` is the difference between this clock and the log's clock. No rule reads `at`.
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
"""The reserved owner of the names of cueline's built-in agents."""


class WorkerGroup(Part):
    """A group of equal workers, which are counted together."""

    kind: WorkerKind
    labels: dict[str, str] = Field(default_factory=dict, exclude_if=not_)
    """The labels of the workers' Ray nodes; calls can demand these labels of a runner."""
    resources: dict[str, float] = Field(default_factory=dict, exclude_if=not_)
    """The resources of each worker: `cpus`, `gpus`, `memory` in bytes, or a resource of Ray."""
    per_node: int | None = Field(default=None, exclude_if=not_)
    """The most workers on one node; None: no limit."""


class ScaleAsked(Fact):
    """A person or program requested another number of workers of a group."""

    type: Literal["ScaleAsked"] = "ScaleAsked"
    group: WorkerGroup
    least: int
    """The number of workers that always run."""
    most: int
    """The most workers; those above *least* start when work waits, and retire when idle."""
    by: str
    at: AwareDatetime


class FleetTaken(Fact):
    """A dispatcher took over the fleet: it records the found workers, and starts the rest."""

    type: Literal["FleetTaken"] = "FleetTaken"
    epoch: int
    up: str
    """The id of the `cueline up` process; the same after each restart of the dispatcher."""
    at: AwareDatetime


class HostJoined(Fact):
    """A host accepts sessions."""

    type: Literal["HostJoined"] = "HostJoined"
    incarnation: str
    group: WorkerGroup
    machine: str
    node: str
    """The Ray node of the worker."""
    pid: int
    epoch: int
    at: AwareDatetime


class HostLost(Fact):
    """A host ended or is silent; other hosts take over the host's sessions."""

    type: Literal["HostLost"] = "HostLost"
    incarnation: str
    reason: str
    epoch: int
    at: AwareDatetime


class RunnerRegistered(Fact):
    """A runner registered for calls and runs; replaces the runner's earlier registration."""

    type: Literal["RunnerRegistered"] = "RunnerRegistered"
    incarnation: str
    runner: str = Field(default="", exclude_if=not_)
    """The runner's name; a new incarnation takes over the blueprints of a stale one."""
    blueprints: tuple[AgentSpec, ...] = Field(default=(), exclude_if=not_)
    """The agents that the runner offers, each with its own name."""
    group: WorkerGroup
    machine: str
    node: str = Field(default="", exclude_if=not_)
    """The Ray node of the worker; empty: the runner is outside of the cluster."""
    pid: int
    by: str = Field(default="", exclude_if=not_)
    """The person who registered a runner outside of the cluster."""
    epoch: int
    at: AwareDatetime


class RunnerStale(Fact):
    """A runner is silent: it gets no more runs, and may still finish its current runs."""

    type: Literal["RunnerStale"] = "RunnerStale"
    incarnation: str
    reason: str
    removed_at: AwareDatetime
    """When the runner is removed, unless it sends a heartbeat earlier."""
    epoch: int
    at: AwareDatetime


class RunnerBack(Fact):
    """A stale runner has sent a heartbeat, and gets runs again."""

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
    """Whether the runner left by itself or was retired; then repeatable runs are queued again."""
    epoch: int
    at: AwareDatetime


class NodeDraining(Fact):
    """A node is about to leave the cluster; the workers on it move to others."""

    type: Literal["NodeDraining"] = "NodeDraining"
    node: str
    epoch: int
    at: AwareDatetime


class NodeDied(Fact):
    """Ray reported the death of a node; no rule reads it, because cueline watches its workers."""

    type: Literal["NodeDied"] = "NodeDied"
    node: str
    reason: str
    """Ray's code of the reason, in lower case, such as `unexpected_termination`."""
    message: str = ""
    """Ray's text of the reason."""
    at: AwareDatetime


class WorkersPending(Fact):
    """The number of workers of a group that wait for a node that can hold them."""

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
"""The facts that a dispatcher records."""
FleetEvent = ScaleAsked | NodeDied | FleetReport


class DispatcherStarted(Fact):
    """A dispatcher acquired the log; each of its orders contains the epoch."""

    type: Literal["DispatcherStarted"] = "DispatcherStarted"
    incarnation: str
    machine: str
    pid: int
    epoch: int
    recover: bool
    """Whether the dispatcher resumes sessions that other processes left."""
    up: str = ""
    """The id of the `cueline up` process; the same after each restart of the dispatcher."""
    at: AwareDatetime


class DispatcherStopped(Fact):
    """A dispatcher ended on purpose."""

    type: Literal["DispatcherStopped"] = "DispatcherStopped"
    incarnation: str
    at: AwareDatetime


DispatcherEvent = DispatcherStarted | DispatcherStopped
