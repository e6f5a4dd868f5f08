"""One probe goes out to a model that was left alone (D37)."""

from tests.actors.crowd import opened
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
