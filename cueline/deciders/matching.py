"""Decides which runner may execute a call, and how many sessions each host gives up."""

from collections.abc import Iterable, Mapping
from math import ceil
from typing import NamedTuple

from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.agent_parts import NO_DEMANDS, Demands


class Offer(NamedTuple):
    """What a runner offers to calls: labels, resources and machine."""

    runner: str
    """The runner's incarnation."""
    machine: str | None
    """The runner's machine; None while unknown: the runner meets no demand for a machine."""
    labels: Mapping[str, str] = {}
    resources: Mapping[str, float] = {}
    outside: bool = False
    """Whether it is outside of the cluster: it takes only calls that demand its name or a label."""


class Unmet(NamedTuple):
    """The number of calls with the same demands that wait for a runner."""

    demands: Demands
    calls: int


def call_demands(tool: ToolSpec, agent: AgentSpec, runner: str = "") -> Demands:
    """Return the demands of a call of *tool*: the tool's demands over the agent's.

    A tool that needs the workspace demands the workspace's machine. The calls of a run demand
    the *runner* that claimed the run.
    """
    own, general = tool.demands, agent.demands
    place = agent.workspace.machine if tool.needs_workspace and agent.workspace else ""
    if not (own or general or place or runner):
        return NO_DEMANDS
    return Demands(
        runner=runner or own.runner or general.runner,
        machine=place or own.machine or general.machine,
        labels={**general.labels, **own.labels},
        resources={**general.resources, **own.resources},
    )


def considers(offer: Offer, demands: Demands) -> bool:
    """Whether the runner takes calls with *demands* if it meets them."""
    return not offer.outside or bool(demands.runner or demands.labels)


def unmet(offer: Offer, demands: Demands) -> Demands:
    """Return the demands that a runner does not meet; empty if the runner may execute the call."""
    if not demands:
        return NO_DEMANDS
    has, amounts = offer.labels, offer.resources
    is_named = demands.runner in ("", offer.runner, has.get("name"))
    is_there = demands.machine in ("", offer.machine)
    labels = {key: value for key, value in demands.labels.items() if has.get(key) != value}
    resources = {key: need for key, need in demands.resources.items() if amounts.get(key, 0) < need}
    if is_named and is_there and not labels and not resources:
        return NO_DEMANDS
    return Demands(
        runner="" if is_named else demands.runner,
        machine="" if is_there else demands.machine,
        labels=labels,
        resources=resources,
    )


def least_unmet(offers: Iterable[Offer], demands: Demands) -> Demands:
    """Return the demands that the closest runner does not meet.

    Without runners, return all demands.
    """
    asked = (offer for offer in offers if considers(offer, demands))
    return min((unmet(offer, demands) for offer in asked), key=_count, default=demands)


def counted(demands: Iterable[Demands]) -> list[Unmet]:
    """Return the number of calls for each set of demands."""
    found: dict[tuple[object, ...], Unmet] = {}
    for each in demands:
        labels, resources = tuple(each.labels.items()), tuple(each.resources.items())
        key = (each.runner, each.machine, labels, resources)
        before = found[key].calls if key in found else 0
        found[key] = Unmet(each, before + 1)
    return list(found.values())


def _count(demands: Demands) -> int:
    named = {demands.runner, demands.machine} - {""}
    return len(named) + len(demands.labels) + len(demands.resources)


SLACK = 0.1
"""The share by which a host's sessions may exceed the mean without a move."""
FEW = 5
"""The number by which a host's sessions may always exceed the mean without a move."""
MOVES = 100
"""The most sessions that move at a time."""


class Load(NamedTuple):
    """The load of one host."""

    sessions: int
    places: int
    """The most sessions that the host takes; 0: none, for example because it drains."""
    leaving: int = 0
    """The number of the host's sessions that are already moving to other hosts."""


def surplus(loads: Mapping[str, Load]) -> dict[str, int]:
    """Return the number of further sessions that each host gives up, most loaded first.

    The sessions move to the hosts with the fewest sessions. No host goes below the mean, so no
    session moves back.
    """
    taking = {host: load for host, load in loads.items() if load.places}
    mean = sum(load.sessions for load in taking.values()) / max(1, len(taking))
    most = max(mean * (1 + SLACK), mean + FEW)
    may_move = MOVES - sum(load.leaving for load in taking.values())
    staying = {host: load.sessions - load.leaving for host, load in taking.items()}
    gives: dict[str, int] = {}
    over = [host for host, stay in staying.items() if stay > most]
    for host in sorted(over, key=staying.__getitem__, reverse=True):
        count = min(staying[host] - ceil(mean), may_move)
        if count > 0:
            gives[host] = count
            may_move -= count
    return gives
