"""Adopts or ends the actors that former dispatchers have left."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import ray

from cueline.actors.presence import find
from cueline.cluster.call import DEAD, UNCLEAR, call
from cueline.cluster.cluster_context import VERSION, ClusterContext
from cueline.cluster.placement import has_node, node_of
from cueline.cluster.runner import RunnerActor
from cueline.cluster.session_host import SessionHostActor
from cueline.cluster.up_actors import actors_of
from cueline.cluster.worker import Worker
from cueline.deciders.fleet import HOSTS, RUNNERS, Group
from cueline.errors import ClusterError, CuelineError
from cueline.events.store import Presence, PresenceBoard

ADOPT_SECONDS = 5.0
"""The time within which a living actor answers; a silent one counts as lost."""


async def adopted_workers(
    context: ClusterContext, epoch: int, board: PresenceBoard
) -> Sequence[Worker]:
    """Return the hosts and runners, of any version, that former incarnations have left."""
    prefix = f"{context.owner}/"
    present = await board.all()
    adopting = [
        _adopted(context, epoch, name, present)
        for name in actors_of(context.namespace, prefix)
        if name.removeprefix(prefix).startswith(("host-", "runner-"))
    ]
    return [worker for worker in await asyncio.gather(*adopting) if worker is not None]


async def _adopted(
    context: ClusterContext, epoch: int, name: str, present: Sequence[Presence]
) -> Worker | None:
    # One of another version has its version in the name, and finishes what it has.
    incarnation, _, version = name.partition("/")[2].partition("@")
    leaves = "" if version == VERSION else f"it is of cueline {version}"
    presence = find(present, incarnation)
    is_host = incarnation.startswith("host-")
    arguments: list[object] = [[]] if is_host else []
    try:
        handle = await context.find(name, 0)
        if presence is None and not await has_node(handle):
            # It waits for a node.
            ray.kill(handle)
            return None
        presence = await call(handle.start.remote(epoch, *arguments), ADOPT_SECONDS)
        group, node = await call(handle.__ray_call__.remote(_group_and_node_of), ADOPT_SECONDS)
    except (*DEAD, ClusterError):
        return None
    except (*UNCLEAR, CuelineError):
        # It may be frozen: sessions may wait for a runner, and a host has some.
        here = presence is not None and presence.machine == context.machine
        node = context.node if here else ""
        group = HOSTS if is_host else RUNNERS
        worker = Worker(group, incarnation, node, handle, presence, name=name, leaves=leaves)
        worker.silent.set()
        return worker
    return Worker(group, incarnation, node, handle, presence, name=name, leaves=leaves)


def _group_and_node_of(actor: SessionHostActor | RunnerActor) -> tuple[Group, str]:
    """Return the group and the Ray node of a worker."""
    return actor.group, node_of(actor)


def end_unused(context: ClusterContext) -> bool:
    """End the actors of other versions, unless one of their hosts or runners is left."""
    names = actors_of(context.namespace, f"{context.owner}/")
    former = [name for name in names if not name.endswith(f"@{VERSION}")]
    if any(
        name.startswith((f"{context.owner}/host-", f"{context.owner}/runner-")) for name in former
    ):
        return False
    for name in former:
        with suppress(ValueError):
            ray.kill(ray.get_actor(name, context.namespace))
    return True
