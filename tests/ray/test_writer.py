import asyncio
import os
import signal

from cueline.cluster.remote_store import RemoteStore
from cueline.events.store import ANY, Draft, Write

NOTHING = "[[reply]]\ntext = '-'"


def write(stream, payload):
    draft = Draft(type="Note", schema=1, payload=payload, occurred_us=0, actor="user")
    return [Write(stream, [draft], ANY)]


async def test_nothing_that_was_acknowledged_is_lost_with_the_writer(on_cluster):
    async with on_cluster(NOTHING, sessions=0) as world:
        store = RemoteStore(world.fleet.site)
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
