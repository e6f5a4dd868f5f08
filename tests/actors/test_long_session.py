"""A session with a long past, in a log as it is used: what is read of it, and when it is kept."""

import asyncio
from dataclasses import replace

import pytest

from bench.conversation import STREAM, Talker, hosted, loaded
from bench.conversation import _ask as ask
from cueline.actors.fold import SessionCache
from cueline.client.current_session import current_session
from cueline.events.inbox import MessageSent
from cueline.events.snapshot import EVERY, unsealed
from cueline.runtime.open_log import open_log
from cueline.stores import MemorySnapshots
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION as SCENE
from tests.actors.session_harness import SessionHarness, Valve
from tests.actors.test_snapshots import Reads


@pytest.fixture
async def log(tmp_path):
    async with open_log(tmp_path / "log.db") as opened:
        yield opened


async def talk(log, turns):
    """Hold a conversation of so many turns, and return how many events that took."""
    await ask(log)
    async with hosted(log, Talker(turns)) as (host, _):
        host.activate(STREAM)
        await host.settled(STREAM)
    return (await log.store.head(STREAM)).version


async def test_of_a_long_session_only_its_end_is_read(log, tmp_path):
    last = await talk(log, turns=EVERY // 5 + 1)
    counting = Reads(log.store, until=last)
    reading = replace(log, store=counting)

    entity = await loaded(reading, "next")
    now = await current_session(SessionCache(reading.journal()), STREAM)

    assert last > EVERY
    # The event of the snapshot's version, for its hash and for the chain; by either.
    assert [last, last] * 2 == counting.versions
    assert (entity.state, last) == (now.state, now.version)
    assert 2 * (EVERY // 5 + 1) < len(entity.prompt.messages)
    assert (tmp_path / "log.db.snapshots").exists()
    assert log.backend.owns(tmp_path / "log.db.snapshots")


async def test_of_a_short_session_nothing_is_kept(log, tmp_path):
    last = await talk(log, turns=2)

    assert last < EVERY
    assert not (tmp_path / "log.db.snapshots").exists()


async def test_whoever_opens_the_log_next_finds_its_snapshots(tmp_path):
    async with open_log(tmp_path / "log.db") as log:
        last = await talk(log, turns=EVERY // 5 + 1)
    async with open_log(tmp_path / "log.db") as log:
        assert last == unsealed(await log.snapshots.newest(STREAM)).version


async def versions(scene):
    """Return of which versions there are snapshots."""
    return [row.version for row in scene.outside.snapshots._rows.get(SCENE, ())]


async def test_a_session_is_kept_whenever_it_rests():
    scene = SessionHarness([says("one"), says("two")])
    await scene.begin(open=True)
    first = (await scene.outside.store.head(SCENE)).version
    await scene.say(MessageSent(lane="followup", text="And then?"))

    second = (await scene.outside.store.head(SCENE)).version
    assert [first, second] == await versions(scene)


async def test_a_session_is_kept_when_its_host_lets_go_of_it():
    valve = Valve()
    scene = SessionHarness([asks_for(("read", {})), says("done")], act=valve)
    world = await scene.begin()
    assert [] == await versions(scene)

    draining = asyncio.create_task(world.host.drain(60))
    await scene.clock.settle()
    valve.opened.set()
    await draining

    last = (await scene.outside.store.head(SCENE)).version
    assert [last] == await versions(scene)
    assert "SessionIdle" not in await scene.types()


class Slow(MemorySnapshots):
    """Snapshots that nobody gets before the gate is opened."""

    def __init__(self):
        super().__init__(every=0)
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def newest(self, stream, until=None):
        self.asked.set()
        await self.gate.wait()
        return await super().newest(stream, until)


async def test_a_session_that_has_ended_is_kept_also_if_its_host_is_closed_meanwhile():
    scene = SessionHarness([says("done")])
    scene.outside.snapshots = slow = Slow()
    world = await scene.begin()
    await slow.asked.wait()

    closing = asyncio.create_task(world.host.close())
    await scene.clock.settle()
    slow.gate.set()
    await closing

    last = (await scene.outside.store.head(SCENE)).version
    assert [last] == await versions(scene)
