"""What others left running is left alone, and nothing else."""

import asyncio

import pytest

from cueline.actors.dispatcher import RecoveryFilter, find_orphans
from cueline.actors.presence import presence_of
from cueline.events.inbox import MessageSent
from cueline.events.store import to_us
from cueline.testing.fakes import FoldedIndex, asks_for
from tests.actors.session_harness import SESSION, SessionHarness, Valve

SAY = MessageSent(lane="note", text="Go on.")


async def left(scene, since):
    outside = scene.outside
    index = FoldedIndex(outside.journal)
    now = scene.clock.now()
    return await find_orphans(outside.store, index, outside.board, now=now, since=since)


@pytest.fixture
async def crashed():
    """A session whose owner died in a call."""
    scene = SessionHarness([asks_for(("pay", {}))], act=Valve())
    died = await scene.begin()
    await died.kill()
    return scene


async def test_a_session_that_was_running_before_was_left(crashed):
    began = await crashed.outside.store.last_position()

    assert [SESSION] == await left(crashed, began)


async def test_a_session_that_a_living_process_drives_was_not_left(crashed):
    owner = (await crashed.outside.store.head(SESSION)).owner
    presence = presence_of("host")
    fields = {name: getattr(presence, name) for name in presence.__slots__}
    fields |= {"incarnation": owner, "beat_us": to_us(crashed.clock.now())}
    await crashed.outside.board.beat(type(presence)(**fields))

    assert [] == await left(crashed, await crashed.outside.store.last_position())


async def test_what_was_driven_since_we_began_was_ours(crashed):
    """A host and the dispatcher of `up --recover none` died together."""
    assert [] == await left(crashed, 0)


async def test_what_somebody_had_a_word_for_since_we_began_is_not_left_any_more(crashed):
    began = await crashed.outside.store.last_position()

    await crashed.outside.say(SESSION, SAY)

    assert [] == await left(crashed, began)


async def test_a_word_that_cannot_be_followed_now_is_followed_later(crashed):
    """And a session whose placing fails is found by whoever looks for work."""
    store, placed = crashed.outside.store, []
    scope = RecoveryFilter([SESSION], await store.last_position())

    async def place(streams):
        placed.extend(streams)
        raise OSError("no host")

    before = SESSION in scope
    await crashed.outside.start("other", crashed.agent)  # never left, and so not looked after here
    await crashed.outside.say(SESSION, SAY)
    with pytest.raises(OSError, match="no host"):
        await scope.follow(store, place)
    again = asyncio.create_task(scope.follow(store, place))
    await crashed.clock.settle()

    assert (before, SESSION in scope, [SESSION]) == (False, True, placed)
    assert not again.done()
    again.cancel()
