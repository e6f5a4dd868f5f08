"""One probe goes out to a model that was left alone (D37)."""

import pytest

from cueline.actors.breaker_reset import reset_breaker
from cueline.errors import RejectedError
from cueline.events.codec import Codec
from cueline.events.inbox import ResumeAsked
from cueline.events.journal import Journal
from tests.actors.crowd import Tapped, opened
from tests.actors.test_breaker_tools import times_out, tool_crowd
from tests.crash.tree import Fated


# D37
async def test_one_probe_goes_out_and_its_success_lets_everybody_go_on():
    crowd, world = await opened()
    late = await crowd.start(4)
    await crowd.clock.advance(60)
    crowd.provider.fault = None
    await crowd.tick(world)

    types = await crowd.types()
    assert (1, "BreakerClosed") == (types.count("BreakerHalfOpened"), types[-1])
    assert {"completed"} == {await crowd.status(stream) for stream in late}
    assert 3 + 4 == len(crowd.provider.asked)


async def test_a_probe_that_fails_keeps_everybody_else_waiting():
    crowd, world = await opened()
    await crowd.start(4)
    await crowd.clock.advance(60)
    await crowd.tick(world)

    state, _ = await crowd.breaker()
    assert ("open", 2, 3 + 1) == (state.phase, state.openings, len(crowd.provider.asked))


async def test_a_probe_that_died_with_its_host_is_gone_on_with_by_its_session():
    crowd, world = await opened()
    (late,) = await crowd.start()
    await crowd.clock.settle()
    await world.kill()
    await crowd.clock.advance(60)
    doomed = await crowd.world(Fated("after BreakerHalfOpened", 1))
    await doomed.kill()
    crowd.provider.fault = None
    await crowd.world()

    types = await crowd.types()
    assert (1, "BreakerClosed") == (types.count("BreakerHalfOpened"), types[-1])
    assert "completed" == await crowd.status(late)


# A person who says so need not wait until it is time.
async def test_a_resume_makes_the_probe_at_once():
    crowd, world = await opened()
    (late,) = await crowd.start()
    await crowd.tick(world)
    crowd.provider.fault = None

    await crowd.outside.say(late, ResumeAsked())
    await crowd.tick(world)

    types = await crowd.types()
    assert (1, "BreakerClosed") == (types.count("BreakerHalfOpened"), types[-1])
    assert "completed" == await crowd.status(late)


async def test_a_resume_makes_the_probe_of_a_tool_at_once():
    crowd = tool_crowd(times_out)
    await crowd.start(2)
    world = await crowd.world()
    (late,) = await crowd.start()
    await crowd.tick(world)

    await crowd.outside.say(late, ResumeAsked())
    await crowd.tick(world)

    assert 2 + 1 == len(crowd.outside.executor.starts)


async def test_of_two_that_resume_one_makes_the_probe():
    crowd, world = await opened()
    late = await crowd.start(2)
    await crowd.tick(world)

    for stream in late:
        await crowd.outside.say(stream, ResumeAsked())
    await crowd.tick(world)

    assert 3 + 1 == len(crowd.provider.asked)


async def test_a_reset_lets_everybody_go_on():
    crowd, world = await opened()
    late = await crowd.start(2)
    await crowd.tick(world)
    crowd.provider.fault = None

    now = crowd.clock.now()
    assert await reset_breaker(crowd.outside.journal, "fake.fake", "ann", now)
    await crowd.clock.settle()
    await crowd.tick(world)

    assert {"completed"} == {await crowd.status(stream) for stream in late}
    assert not await reset_breaker(crowd.outside.journal, "default/fake.fake", "ann", now)


@pytest.mark.parametrize("name", ["none", "fake/fake.other", "No Name"])
async def test_an_unknown_breaker_cannot_be_reset(name):
    crowd, _ = await opened()

    with pytest.raises(RejectedError, match="there is no such breaker"):
        await reset_breaker(crowd.outside.journal, name, "ann", crowd.clock.now())


async def test_who_resets_a_breaker_in_the_moment_of_its_probe_has_it_closed():
    crowd, _ = await opened()
    store = Tapped(crowd.outside.journal.store, lambda *_: None)
    append, raced = store.append, []

    async def first(writes, key):
        if not raced:
            raced.append(True)
            await append(writes, "somebody else")
        return await append(writes, key)

    store.append = first
    journal = Journal(store, Codec(), crowd.clock.now)

    await reset_breaker(journal, "fake.fake", "ann", crowd.clock.now())

    assert "closed" == (await crowd.breaker())[0].phase
