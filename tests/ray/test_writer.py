import asyncio
import os
import signal

from cueline.cluster.remote_store import RemoteStore
from cueline.events.store import ANY, Draft, Write

SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""
NOTHING = "[[reply]]\ntext = '-'"


def write(stream, payload):
    draft = Draft(type="Note", schema=1, payload=payload, occurred_us=0, actor="user")
    return [Write(stream, [draft], ANY)]


async def test_nothing_that_was_acknowledged_is_lost_with_the_writer(on_cluster):
    async with on_cluster(NOTHING, sessions=0) as world:
        store = RemoteStore(world.fleet.context)
        pid = await world.pid_of("writer")
        appends = [
            asyncio.create_task(store.append(write(f"inbox-default/{n}", b"1"), key="k"))
            for n in range(600)
        ]
        await asyncio.wait(appends, return_when=asyncio.FIRST_COMPLETED)
        os.kill(pid, signal.SIGKILL)
        appended = await asyncio.gather(*appends)
        await store.close()

        kept = [event.position async for event in world.log.store.read_all()]
        assert sorted(each.position for each in appended) == kept


async def test_a_session_goes_on_when_the_writer_dies(on_cluster):
    async with on_cluster(SCRIPT, tools=["repeatable"]) as world:
        await world.begun()
        os.kill(await world.pid_of("writer"), signal.SIGKILL)
        world.let_go()

        assert "Done." == await world.result()
        assert [] == world.troubles


async def test_a_frozen_writer_is_replaced_and_nobody_counts_as_dead_for_it(on_cluster):
    async with on_cluster(SCRIPT, tools=["repeatable"]) as world:
        await world.begun()
        members = world.fleet.members()
        os.kill(await world.pid_of("writer"), signal.SIGSTOP)
        world.let_go()

        assert "Done." == await world.result()
        assert members == world.fleet.members()
        assert 0 == (await world.types())["SessionTakenOver"]


async def test_a_decision_counts_though_the_gate_died_after_it_asked(on_cluster):
    async with on_cluster(SCRIPT.replace("repeatable", "guarded"), tools=["guarded"]) as world:
        world.let_go()
        async for _, fact in world.session.events():
            if fact.type == "ApprovalRequested":
                os.kill(await world.pid_of("gate"), signal.SIGKILL)
                await world.session.approve(fact)
                break

        assert "Done." == await world.result()
        assert [] == world.troubles
