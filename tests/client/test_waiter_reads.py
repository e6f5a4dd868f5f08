"""What the lookout has read is handed to who waits, and not read again."""

import asyncio

from cueline.actors.stream_notifier import HEARD
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness, Valve, living
from tests.client.waiting import Waiting


class CountingStore:
    """Counts how often somebody reads a stream."""

    def __init__(self, store):
        self._store = store
        self.reads = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def read(self, *args):
        self.reads += 1
        return self._store.read(*args)


# I1: what the lookout has read for all is not read a second time by each.
async def test_what_comes_is_read_once_for_all_who_wait_for_it():
    valve = Valve(asks_for(("read", {})))
    scene = SessionHarness([valve, *[asks_for(("read", {}))] * 30, says("done")])
    world = await scene.begin()
    await living(scene, world.name)
    store = CountingStore(scene.outside.store)
    waiting = Waiting(scene, journal=Journal(store, Codec(), scene.clock.now))
    await scene.clock.settle()
    before = len(waiting.told)

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert 100 < len(waiting.told) - before
    assert 3 == store.reads  # what was there, what came until it looked out, and the first of it


class SlowWaiting(Waiting):
    """Somebody who waits, and takes no more facts while `ready` is not set."""

    async def _wait(self, waiter):
        self.ready = asyncio.Event()
        self.ready.set()
        async for recorded, fact in waiter.until_it_rests():
            assert recorded.version == len(self.told) + 1
            self.told.append(fact.type)
            await self.ready.wait()


async def test_who_is_slow_is_told_everything_once_and_little_is_held_for_them():
    valve = Valve(asks_for(("read", {})))
    scene = SessionHarness([valve, *[asks_for(("read", {}))] * HEARD, says("done")])
    world = await scene.begin()
    await living(scene, world.name)
    waiting = SlowWaiting(scene)
    await scene.clock.settle()
    waiting.ready.clear()

    valve.opened.set()
    await scene.clock.settle()
    assert len(waiting.told) + HEARD < len(await scene.types())
    waiting.ready.set()
    await scene.clock.settle()

    await waiting.end()
    assert await scene.types() == waiting.told
