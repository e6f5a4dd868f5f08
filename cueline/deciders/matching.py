"""Which runner may execute a call: what it offers against what the call demands."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.demands import NO_DEMANDS, Demands


class Offer(NamedTuple):
    """What a runner offers."""

    runner: str
    """Its incarnation."""
    machine: str | None
    """None while it is unknown; it then meets no demand for a machine."""
    labels: Mapping[str, str] = {}
    resources: Mapping[str, float] = {}


class Unmet(NamedTuple):
    """Calls that wait for a runner, all with the same demands."""

    demands: Demands
    calls: int


def call_demands(tool: ToolSpec, agent: AgentSpec, runner: str = "") -> Demands:
    """Return what a call of *tool* needs: the tool's demands over the agent's.

    A tool that needs the workspace needs the machine of it. The calls of a run need the
    *runner* that claimed it.
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


def unmet(offer: Offer, demands: Demands) -> Demands:
    """Return the demands that a runner does not meet; it may execute the call if there are none."""
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
    """Return the demands that the runner which meets most of them does not meet.

    Without any runner these are all demands.
    """
    return min((unmet(offer, demands) for offer in offers), key=_count, default=demands)


def counted(demands: Iterable[Demands]) -> list[Unmet]:
    """Return how many calls have which demands."""
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
