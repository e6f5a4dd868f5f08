"""A fleet that follows what is wanted, and what Ray knows of those that wait for a node."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from cueline.actors.presence import presence_of
from cueline.client.client import Client
from cueline.clock import SystemClock
from cueline.cluster.dispatcher import DispatcherSettings
from cueline.cluster.placement import pending_demands
from cueline.cluster.up import Up
from cueline.deciders.reconcile import CPUS
from cueline.events.fleet import FLEET_STREAM
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.place import Place
from cueline.testing.wait import PATIENCE_SECONDS

CALLS = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""
NOWHERE = {"nowhere": 1.0}
"""A resource that no node has."""


@asynccontextmanager
async def up(world):
    """Yield a client of a running `up`."""
    factory = actor_factory_of(world.log)
    kept = Up(world.cluster, namespace_of(factory.log_id), factory, presence_of("up"))
    try:
        await kept.start(DispatcherSettings())
        yield Client(world.log, Place(world.log.url))
    finally:
        await kept.stop()


async def until(holds):
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await holds():
            await clock.sleep(0.1)


async def counts(client):
    """Return the running and the pending workers of each group."""
    return [(each.running, each.pending) for each in (await client.fleet()).groups]


@pytest.mark.long
async def test_a_running_fleet_becomes_what_is_asked_for(world_of):
    async with world_of() as world, up(world) as client:
        await client.scale(hosts=2, runners=3)
        await until(lambda: are(client, (2, 0), (3, 0)))
        await client.scale(hosts=1, runners=1)
        await until(lambda: are(client, (1, 0), (1, 0)))

        await until(lambda: have_retired(world, 3))


async def have_retired(world, count):
    facts = [fact async for _, fact in world.log.journal().read(FLEET_STREAM)]
    reasons = [each.reason for each in facts if each.type in {"HostLost", "RunnerRemoved"}]
    return ["it was retired"] * count == reasons


async def test_ray_knows_which_runner_a_session_waits_for(world_of):
    # Ray's autoscaler adds nodes for this.
    async with world_of() as world, up(world) as client:
        await client.scale(runners=(0, 2), resources=NOWHERE)
        before = await pending_demands()
        await world.ask(CALLS, 1, tools=["undeclared"], demands={"resources": NOWHERE})
        await until(lambda: are(client, (1, 0), (1, 0), (0, 1)))

        fleet = await client.fleet()
        assert [(1, NOWHERE)] == [(each.sessions, each.demands.resources) for each in fleet.waits]
        assert ([], [{"cpus": CPUS, **NOWHERE}]) == (before, await pending_demands())

        await client.scale(runners=0, resources=NOWHERE)
        await until(lambda: are(client, (1, 0), (1, 0)))
        await until(demands_nothing)


async def demands_nothing():
    return not await pending_demands()


async def are(client, *expected):
    return [*expected] == await counts(client)
