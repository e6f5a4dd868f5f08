"""Checks the machines of a cluster before anything is recorded or started there."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cueline.cluster.cluster_context import VERSION, actors_of
from cueline.cluster.ray_call import DEAD, UNCLEAR, Handle, ask_head, call
from cueline.errors import ClusterError, CuelineError, ToolImportError
from cueline.events.agent import AgentSpec

CHECK_SECONDS = 30.0
"""The longest wait for the answer of a node or runner."""
_SHOWN = 5
"""The most nodes that a message names; it counts the others."""


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """A runner's answer about an agent's tools."""

    address: str
    """The address of its node."""
    problems: Mapping[str, str]
    """The reason why each tool cannot run there."""


async def check_nodes(address: str) -> int:
    """Check that each node of the cluster at *address* has this version of cueline; count them.

    Raises:
        ClusterError: nodes have another version; the message names them and says what to do.
    """
    nodes = [node for node in await ask_head(ray.nodes) if node["Alive"]]
    found = await asyncio.gather(*(_cueline_on(node["NodeID"]) for node in nodes))
    named = zip([node["NodeManagerAddress"] for node in nodes], found, strict=True)
    if wrong := [f"{node} {said}" for node, said in named if said]:
        reason = (
            f"{_count(len(wrong), len(nodes), 'node')} cannot run cueline {VERSION}: "
            f"{_shown(wrong)}; install cueline {VERSION} on each, as by one image for all"
        )
        raise ClusterError(address, reason)
    return len(nodes)


async def _cueline_on(node: str) -> str:
    """Return the fault of cueline on *node*; empty: none."""
    affinity = NodeAffinitySchedulingStrategy(node, soft=False)
    task = ray.remote(_version_task()).options(
        num_cpus=0, max_retries=0, scheduling_strategy=affinity
    )
    try:
        found = await call(task.remote(), CHECK_SECONDS)
    except TimeoutError:
        return f"does not answer within {CHECK_SECONDS:.0f} s"
    except (*DEAD, *UNCLEAR, CuelineError) as error:
        return f"fails ({type(error).__name__})"
    if found == VERSION:
        return ""
    return f"has cueline {found}" if found else "has no cueline"


def _version_task() -> Callable[[], str]:
    """Return a function that Ray sends by value, because a node may have no cueline."""

    def find_version() -> str:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - it is sent

        try:
            return version("cueline")
        except PackageNotFoundError:
            return ""

    return find_version


def runners_in(namespace: str, owner: str) -> list[Handle]:
    """Return the runners of *owner*."""
    runners = []
    for name in actors_of(namespace, f"{owner}/runner-"):
        with suppress(ValueError):  # it has just ended
            runners.append(ray.get_actor(name, namespace))
    return runners


async def check_tools(runners: Sequence[Handle], agents: Sequence[AgentSpec]) -> None:
    """Check that each of *runners* that answers can run the tools of *agents*.

    Raises:
        ToolImportError: a runner cannot; the message names the nodes and says what to do.
    """
    for agent in agents:
        if agent.tools:
            await _check_agent(runners, agent)


async def _check_agent(runners: Sequence[Handle], agent: AgentSpec) -> None:
    asked = [_check_on(runner, agent) for runner in runners]
    checks = [check for check in await asyncio.gather(*asked) if check is not None]
    wrong = sorted(
        {
            f"{check.address} has no {name} ({why.partition(';')[0]})"
            for check in checks
            for name, why in check.problems.items()
        }
    )
    if wrong:
        bad = {check.address for check in checks if check.problems}
        total = len({check.address for check in checks})
        reason = (
            f"{_count(len(bad), total, 'node')} with runners cannot run its tools: "
            f"{_shown(wrong)}; install them on each, or `cueline down`, and `cueline up` with them"
        )
        raise ToolImportError(agent.name, reason)


async def _check_on(runner: Handle, agent: AgentSpec) -> ToolCheck | None:
    try:
        answer: Any = await call(runner.check.remote(agent), CHECK_SECONDS)
    except (*DEAD, *UNCLEAR, CuelineError, AttributeError):
        return None  # lost, busy or of another version: its calls fail with the reason
    found: ToolCheck = answer
    return found


def _count(wrong: int, total: int, what: str) -> str:
    return f"{wrong} of {total} {what}{'' if total == 1 else 's'}"


def _shown(wrong: Sequence[str]) -> str:
    more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return "; ".join(wrong[:_SHOWN]) + more
