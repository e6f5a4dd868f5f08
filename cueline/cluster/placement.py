"""Places the hosts and runners of a fleet on Ray's nodes."""

from collections.abc import Collection, Mapping
from functools import partial
from math import isclose
from typing import Any

import ray
from ray._private.state import state
from ray._private.worker import global_worker
from ray.core.generated import autoscaler_pb2
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from cueline.cluster.cluster_context import NODE_LABEL
from cueline.cluster.ray_call import ALIVE, Handle, ask_head
from cueline.deciders.fleet import Group
from cueline.deciders.reconcile import Node, takes

_NAMES = {"cpus": "CPU", "gpus": "GPU", "memory": "memory"}
_OUR_NAMES = {theirs: ours for ours, theirs in _NAMES.items()}


def placement(
    group: Group, node: str = "", avoid: Collection[str] = (), *, only: bool = False
) -> dict[str, Any]:
    """Return the options of Ray for a worker of *group*.

    Ray places the worker on *node* if that has room, or *only* there, and not on *avoid*.
    """
    custom = takes(group)
    options: dict[str, Any] = {
        "num_cpus": custom.pop("cpus"),
        "num_gpus": custom.pop("gpus", None),
        "memory": custom.pop("memory", None),
        "resources": custom or None,
        "scheduling_strategy": "SPREAD",
    }
    labels = dict(group.labels)
    if node:
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(
            node, soft=not only, _spill_on_unavailable=not only
        )
    elif avoid:
        labels[NODE_LABEL] = f"!in({','.join(avoid)})"
    if labels:
        options["label_selector"] = labels
    return options


async def cluster_nodes() -> dict[str, Node]:
    """Return the living nodes of the cluster."""
    return {
        node["NodeID"]: Node(
            node["Labels"],
            {_OUR_NAMES.get(name, name): amount for name, amount in node["Resources"].items()},
        )
        for node in await ask_head(ray.nodes)
        if node["Alive"]
    }


async def is_pending(actor: Handle, group: Group) -> bool:
    """Whether *actor* has not started, and an actor with its demands waits for a node."""
    # No public call returns this; Ray's own libraries use the same method.
    if actor._get_local_state() == ALIVE:  # noqa: SLF001 - see above
        return False
    try:
        return any(_is_same(takes(group), each) for each in await pending_demands())
    except Exception:  # noqa: BLE001 - whatever Ray raises while its head is away
        return False


async def pending_demands() -> list[dict[str, float]]:
    """Return the resources for which actors wait, by our names, from Ray's autoscaler."""
    # No public call returns this without the dashboard; Ray's autoscaler uses the same method.
    reply = autoscaler_pb2.GetClusterResourceStateReply()  # type: ignore[attr-defined]  # generated
    gcs: Any = global_worker.gcs_client  # type: ignore[attr-defined]  # Ray types few
    reply.ParseFromString(await ask_head(gcs.get_cluster_resource_state))
    return [
        {_OUR_NAMES.get(name, name): amount for name, amount in bundle.items()}
        for each in reply.cluster_resource_state.pending_resource_requests
        if (bundle := each.request.resources_bundle)
    ]


async def node_of_actor(actor: Handle) -> str:
    """Return the node on which an actor runs or ran; empty if it never ran."""
    table = await ask_head(partial(state.actor_table, actor._actor_id.hex()))  # noqa: SLF001 - as above
    node = str(table["Address"]["NodeID"])
    return node if node.strip("f") else ""


async def has_node(actor: Handle) -> bool:
    """Whether Ray has placed *actor*, as far as is known."""
    try:
        return await node_of_actor(actor) != ""
    except Exception:  # noqa: BLE001 - as above
        return True


def node_of(_actor: object) -> str:
    """Return the node of the current actor."""
    return str(ray.get_runtime_context().get_node_id())


def _is_same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return one.keys() == other.keys() and all(isclose(one[name], other[name]) for name in one)
