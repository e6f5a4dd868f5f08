import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.actors.tool_port import ToolOrder
from cueline.cluster.remote_runner import RemoteRunner
from cueline.deciders.session import order_digest
from cueline.errors import FencedError, StaleOrderError
from cueline.events.journal import FactWrite
from cueline.events.session import SessionContinued, SessionWaiting
from cueline.testing.wait import await_until

NOTHING = "[[reply]]\ntext = '-'"
SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""


@pytest.mark.long
async def test_a_frozen_host_that_thaws_changes_nothing(on_cluster):
    async with on_cluster(SCRIPT, tools=["undeclared"]) as world:
        await world.begun()
        frozen = await world.presence("host")
        order = await order_of(world, epoch=1)
        os.kill(frozen.pid, signal.SIGSTOP)
        await await_until(lambda: frozen not in world.presences("host"))
        await await_until(lambda: world.presences("host"))
        world.let_go()
        assert "Done." == await world.result()
        os.kill(frozen.pid, signal.SIGCONT)
        runner = (await world.presence("runner")).incarnation
        old = RemoteRunner(world.fleet.context, runner, world.fleet.context.named(runner), "old")
        with pytest.raises(StaleOrderError):
            await old.execute(order)
        with pytest.raises(FencedError):
            await world.log.journal().append([late(world)], key="late")

        await await_until(lambda: not Path(f"/proc/{frozen.pid}").exists())
        types = await world.types()
        assert (1, 1, 1) == (
            types["SessionTakenOver"],
            types["ToolReturned"],
            len(world.journal_lines()),
        )


async def test_a_frozen_runner_that_thaws_is_asked_what_became_of_its_call(on_cluster):
    async with on_cluster(SCRIPT, tools=["undeclared"]) as world:
        frozen = await frozen_in_a_call(world)
        world.let_go()
        os.kill(frozen.pid, signal.SIGCONT)

        assert "Done." == await world.result()
        types = await world.types()
        assert (0, 1) == (types["ToolInDoubt"], types["ToolReturned"])
        assert 1 == len(world.journal_lines())


@pytest.mark.long
async def test_the_end_of_a_frozen_runner_is_noticed(on_cluster):
    async with on_cluster(SCRIPT, tools=["undeclared"], policy={"in_doubt": "tell"}) as world:
        frozen = await frozen_in_a_call(world)
        os.kill(frozen.pid, signal.SIGKILL)

        assert "Done." == await world.result()
        types = await world.types()
        assert (1, 0) == (types["ToolInDoubt"], types["ToolReturned"])
        assert 1 == len(world.journal_lines())


async def test_a_host_obeys_only_the_newest_dispatcher(on_cluster):
    async with on_cluster(NOTHING, sessions=0) as world:
        [host] = [m for m in world.fleet.members() if m.role == "host"]
        await host.handle.ask.remote(2, "activate_all", [])

        with pytest.raises(StaleOrderError):
            await host.handle.ask.remote(1, "activate_all", [])


async def frozen_in_a_call(world):
    """Freeze the runner in a call, have its host die too, and return the runner's presence.

    The next host has never heard of that runner, and waits.
    """
    await world.begun()
    frozen = await world.presence("runner")
    os.kill(frozen.pid, signal.SIGSTOP)
    await await_until(lambda: frozen not in world.presences("runner"))
    await world.kill("host")
    await world.fact(SessionWaiting)
    return frozen


def late(world):
    fact = SessionContinued(by="replay", at=world.log.clock.now())
    return FactWrite(stream=world.streams[0], steps=[[fact]], expected_version=6, epoch=1)


async def order_of(world, epoch):
    """Return what the first host ordered, as it would order it again."""
    [started] = [f for f in await world.facts() if f.type == "ToolStarted"]
    [session] = [f for f in await world.facts() if f.type == "SessionStarted"]
    order = ToolOrder(
        session=world.streams[0],
        effect=started.effect,
        attempt=started.attempt,
        key=f"{world.streams[0]}/{started.effect}",
        runner=started.runner,
        epoch=epoch,
        tool=session.agent.tools[0],
        arguments={},
        workspace=session.agent.workspace,
        digest="",
    )
    place = session.agent.workspace
    digest = order_digest(
        session=order.session,
        effect=order.effect,
        tool=order.tool.name,
        tool_digest=order.tool.digest,
        arguments={},
        workspace=(place.machine, place.path),
    )
    return replace(order, digest=digest)
