"""A breaker opens, is probed and closes, and the process dies wherever it can (I13, 004-005)."""

import asyncio

from cueline.actors.model_port import drop_delta
from cueline.deciders.breaker import BREAKER
from cueline.errors import ProviderUnavailableError
from cueline.testing.crash import CrashPoint, Outside, World
from cueline.testing.fakes import JournalingExecutor, agent_spec, says
from tests.crash.undisturbed import spread

MODEL = "breaker-default/fake.fake"
AGENT = agent_spec(
    retry={"max_retries": 9, "jitter": 0}, breaker={"threshold": 2, "timeout_seconds": 2}
)
OUTAGE_SECONDS = 4
LONGEST = 900.0


class Down:
    """A model that is away for a while after the start."""

    def __init__(self):
        self.clock = None

    async def reply(self, request, deltas=drop_delta):
        if (self.clock.now() - self.began).total_seconds() < OUTAGE_SECONDS:
            raise ProviderUnavailableError("overloaded", "away")
        return says("Back.")

    async def close(self):
        """Nothing to let go of."""


async def outage():
    """Return an outside whose model is away, with two sessions that want it."""
    model = Down()
    outside = Outside.new(model, JournalingExecutor({}))
    model.clock, model.began = outside.clock, outside.clock.now()
    return outside, [await outside.start(name, AGENT) for name in ("a", "b")]


async def drive(outside, life, sessions):
    """Drive until all have ended, or the process died."""
    world = World(outside, life)
    while not world.life.dead:
        await world.rest(within=LONGEST)
        if all([(await outside.state(s)).finished for s in sessions]):
            break
        await outside.clock.advance(1)
    await world.kill()
    return world


async def undisturbed():
    outside, sessions = await outage()
    return (await drive(outside, CrashPoint(), sessions)).life.points


POINTS = asyncio.run(undisturbed())


def test_the_story_opens_probes_and_closes():
    told = {point for point in POINTS if point.startswith("after")}

    assert {"after FailureCounted, BreakerOpened", "after BreakerHalfOpened"} <= told
    assert "after BreakerClosed" in told


@spread("point", range(len(POINTS)))
async def test_wherever_it_dies_all_sessions_get_there(point):
    outside, sessions = await outage()
    await drive(outside, CrashPoint(point), sessions)
    await drive(outside, CrashPoint(), sessions)

    assert {"completed"} == {str((await outside.state(s)).status) for s in sessions}
    assert "closed" == BREAKER.replay(await outside.facts(MODEL)).phase
