"""A second node on the tests' own machine: what is on it moves when it is drained."""

import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import psutil
import pytest
import ray
from ray._private.worker import global_worker
from ray.core.generated.autoscaler_pb2 import DrainNodeReason

from cueline.actors.presence import presence_of
from cueline.cluster.connection import connect_ray
from cueline.cluster.dispatcher import DispatcherSettings
from cueline.cluster.up import Up
from cueline.errors import ClusterError
from cueline.events.session import ToolReturned, ToolStarted
from cueline.runtime.actor_factory import actor_factory_of, namespace_of
from cueline.runtime.on_ray import dispatcher_lives
from cueline.testing.wait import PATIENCE_SECONDS, await_until, wait_until

CALLS = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""


def living():
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


# The tests' cluster is on loopback, for which Ray puts another address of the machine.
RAY = """
from ray._private import services
services.resolve_ip_for_localhost = str
from ray.scripts.scripts import main
main()
"""


def start_node(cluster, address, cpus):
    """Start another node, and return its process and its id."""
    before = living()
    node = ["--address", cluster.address, "--node-ip-address", address, "--num-cpus", cpus]

    def start():
        return subprocess.Popen(
            [sys.executable, "-c", RAY, "start", *node, "--block"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def lives():
        nonlocal raylet
        if raylet.poll() is not None:  # Ray gives up after 30 s, which a busy machine may take
            raylet = start()
        return living() - before

    raylet = start()
    wait_until(lives)
    return raylet, (living() - before).pop()


def end_node(raylet, number):
    """Send the signal *number* to a node: one that is drained ends by itself."""
    there = [psutil.Process(raylet.pid), *psutil.Process(raylet.pid).children(recursive=True)]
    for process in there:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    raylet.wait(PATIENCE_SECONDS)


@pytest.fixture
def second_node(cluster):
    raylet, node = start_node(cluster, "127.0.0.1", "4")
    yield node
    with suppress(psutil.NoSuchProcess):
        end_node(raylet, signal.SIGTERM)
    raylet.wait(PATIENCE_SECONDS)


def drain(node):
    deadline = int(time.time() * 1000) + 60_000
    client = global_worker.gcs_client
    accepted, why = client.drain_node(
        node, DrainNodeReason.DRAIN_NODE_REASON_PREEMPTION, "it goes", deadline
    )
    assert accepted, why


async def test_what_is_on_a_drained_node_moves_to_another(world_of, second_node):
    """000-068, C7."""
    async with world_of() as world, world.driven(hosts=2, runners=2):
        await await_until(lambda: 2 == len(world.presences("host")))
        await await_until(lambda: 2 == len(world.presences("runner")))
        there = [m.incarnation for m in world.place.members() if m.state.node == second_node]

        drain(second_node)

        assert 2 == len(there)
        await await_until(lambda: moved(world, second_node))


async def test_a_call_in_flight_on_a_drained_node_ends_there_and_is_not_made_again(
    world_of, second_node
):
    """000-068, C7, I5."""
    async with patient(world_of) as world, world.driven(hosts=2, runners=2):
        await await_until(lambda: 2 == len(world.presences("runner")))
        there = {m.incarnation for m in world.place.members() if m.state.node == second_node}
        began = None
        while began not in there:  # a host learns of the second runner when it is told
            began = await runner_of_a_call(world)

        drain(second_node)
        await await_until(lambda: any(member.state.leaves for member in world.fleet.members()))
        while began in there:  # and a host learns that one takes no more
            began = await runner_of_a_call(world)
        world.let_go()
        returned = [(await world.fact(ToolReturned, stream)).output for stream in world.streams]
        await await_until(lambda: moved(world, second_node))

        keys = [key for key, _, _ in world.journal_lines()]
        assert {"done by attempt 1"} == set(returned)
        assert sorted(f"{stream}/1.0" for stream in world.streams) == sorted(keys)


@asynccontextmanager
async def patient(world_of):
    """A world in which what is in flight has longer than a busy machine takes for one more call."""
    async with world_of() as world:
        world.log = replace(world.log, grace_seconds=15)
        yield world


async def runner_of_a_call(world):
    """Start a session, and return who runs its call, once that has begun."""
    await world.ask(CALLS, 1, tools=["undeclared"])
    await world.place.place(world.streams[-1:])
    await world.begun(len(world.streams))
    return (await world.fact(ToolStarted, world.streams[-1])).runner


def moved(world, node):
    members = world.place.members()
    up = [member for member in members if member.presence is not None]
    return 4 == len(up) and not [member for member in members if member.state.node == node]


@pytest.mark.long
async def test_what_waits_for_the_machine_with_the_log_goes_on_when_it_is_back(world_of, cluster):
    """Its writer and the dispatcher are on the node that dies; the host and the runner are not."""
    raylet, node = start_node(cluster, "127.0.0.2", "0")
    async with world_of() as world:
        factory = actor_factory_of(world.log)
        there = replace(cluster, node=node, node_address="127.0.0.2")
        up = Up(there, namespace_of(factory.log_id), factory, presence_of("up"))
        await up.start(DispatcherSettings(stays=True))
        await world.ask(CALLS, 1, tools=["undeclared"])
        await world.begun()
        writer = await node_of(up, "writer")

        end_node(raylet, signal.SIGKILL)
        await await_until(lambda: node not in living())
        world.let_go()
        before = (await world.types())["ToolReturned"]
        silent = not await dispatcher_lives(world.log)
        raylet, _ = start_node(cluster, "127.0.0.2", "0")
        result = await world.result()
        await up.stop()
    end_node(raylet, signal.SIGTERM)

    assert (node, 0, True, "Done.") == (writer, before, silent, result)
    assert 1 == len(world.journal_lines())


async def node_of(up, role):
    actor = ray.get_actor(up._context.named(role), up._context.namespace)
    return await actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id())


def test_a_process_is_on_one_cluster_at_a_time(cluster):
    second = connect_ray(None, "another")
    with pytest.raises(ClusterError, match="this process has one already"), second:
        pass

    assert cluster.node in living()
