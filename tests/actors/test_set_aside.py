"""A session that its host cannot drive: set aside alone, owned by nobody, tried again."""

from functools import partial

import pytest

from cueline.actors.session_owner import check_resume, owner_of
from cueline.deciders.session import Status
from cueline.errors import CorruptEventError, UnknownEventTypeError
from cueline.events.inbox import MessageSent, ResumeAsked
from cueline.events.snapshot import NO_SNAPSHOTS
from cueline.events.store import Draft, Write
from cueline.testing.fakes import says
from tests.actors.session_harness import SESSION, Interrupted, SessionHarness, Valve, living


def unkept(replies):
    """Return a scene without snapshots: what is damaged before one is not read."""
    scene = SessionHarness(replies)
    scene.outside.snapshots = NO_SNAPSHOTS
    return scene


async def damage(store):
    events = store._tables.streams[SESSION].events
    events[1] = events[1]._replace(payload=b"{}")


async def outgrow(store):
    head = await store.head(SESSION)
    draft = Draft("NotYetInvented", 1, b"{}", 0, "agent")
    await store.append([Write(SESSION, [draft], head.version, head.epoch)], "new")


@pytest.mark.parametrize(
    ("spoil", "error"), [(damage, CorruptEventError), (outgrow, UnknownEventTypeError)]
)
async def test_a_session_that_cannot_be_read_is_set_aside_alone_and_reported(spoil, error):
    # C9, DESIGN 5: one session, not the host; once, not every second.
    scene = unkept([says("one"), says("two")])
    first = await scene.begin(open=True)
    await first.kill()
    await spoil(scene.outside.store)
    neighbour = await scene.outside.start("neighbour", scene.agent)
    await scene.outside.say(SESSION, MessageSent(lane="note", text="Hello?"))

    world = await scene.world()
    await world.dispatcher.tick()
    await scene.clock.settle()

    assert [(SESSION, error)] == [(stream, type(told)) for stream, told in world.troubles]
    assert Status.COMPLETED == (await scene.outside.state(neighbour)).status


async def spoilt(scene):
    """Damage the session, and return what restores it."""
    events = scene.outside.store._tables.streams[SESSION].events
    whole = events[1]
    await damage(scene.outside.store)
    return partial(events.__setitem__, 1, whole)


async def test_a_session_that_was_set_aside_is_retried_after_a_message():
    scene = unkept([says("one"), says("two")])
    await (await scene.begin(open=True)).kill()
    restore = await spoilt(scene)
    await scene.say(MessageSent(lane="note", text="Hello?"))
    world = await scene.world()
    restore()
    await world.dispatcher.tick()
    await scene.clock.settle()
    assert 1 == (await scene.count())["SessionIdle"]

    await scene.say(ResumeAsked())

    assert 2 == (await scene.count())["SessionIdle"]
    assert 1 == len(world.troubles)


async def test_what_is_said_to_a_session_while_it_fails_has_it_tried_again():
    # I7: whoever mends it and says so is not too early for its host.
    scene = unkept([says("one"), says("two")])
    await (await scene.begin(open=True)).kill()
    restore = await spoilt(scene)
    await scene.say(MessageSent(lane="note", text="Hello?"))

    async def mend():
        del life.at["after acquiring session"]
        await scene.outside.say(SESSION, ResumeAsked())

    life = Interrupted({"after acquiring session": mend})
    world = await scene.world(life)
    assert 1 == len(world.troubles)
    restore()
    await world.dispatcher.tick()
    await scene.clock.settle()

    assert 2 == (await scene.count())["SessionIdle"]


async def owner_in(scene):
    outside = scene.outside
    return await owner_of(outside.store, outside.board, SESSION, scene.clock.now())


async def test_nobody_owns_a_session_that_was_set_aside_until_it_is_tried_again():
    # C9: who has mended it may resume it, though its host lives.
    scene = SessionHarness({(1, 1): Valve(), (1, 2): Valve()})
    await (await scene.begin()).kill()
    restore = await spoilt(scene)
    world = await scene.world()
    host = await living(scene, world.name)
    restore()

    check_resume(await scene.state(), [], await owner_in(scene))
    await scene.say(ResumeAsked())

    assert host.incarnation == (await owner_in(scene)).incarnation
    assert [SESSION] == await world.host.active()


async def test_who_sets_a_session_aside_takes_it_from_nobody():
    # I3: a host that thaws, and fails over a session that is another's by now.
    valve = Valve(says("from the past"))
    scene = SessionHarness({(1, 1): valve, (1, 2): Valve()})
    frozen = await scene.begin()
    world = await scene.world()
    frozen.host._agent_cache.give_back = None

    valve.opened.set()
    await scene.clock.settle()

    assert [SESSION] == [stream for stream, _ in frozen.troubles]
    assert world.name == (await scene.outside.store.head(SESSION)).owner
