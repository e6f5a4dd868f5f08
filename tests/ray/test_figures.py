"""What the nodes of Ray export to Prometheus about the actors."""

import re

import httpx2
import ray

from cueline.testing.wait import await_answer
from tests.ray.test_sessions import SCRIPT


async def exported():
    """Return the figures of cueline that the node exports, by name."""
    node = ray.nodes()[0]
    address = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
    async with httpx2.AsyncClient() as http:
        text = (await http.get(address)).text
    found = re.findall(r"(?m)^ray_(cueline_\w+)\{.*\} (\S+)$", text)
    return {name: float(value) for name, value in found}


async def test_a_node_exports_what_its_hosts_and_runners_do(on_cluster):
    async with on_cluster(SCRIPT, tools=["repeatable"]) as world:
        await world.begun(2)

        async def figures():  # each process exports its own, when its time comes
            found = await exported()
            both = (found.get("cueline_host_sessions"), found.get("cueline_runner_calls"))
            return found if both == (1, 2) else None

        found = await await_answer(figures)
        world.let_go()
        await world.result()

    assert 0 == found["cueline_waiting_calls"]
