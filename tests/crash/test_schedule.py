"""Kill a series of sessions at every point there is: each time starts one, and none is missing."""

import asyncio
from datetime import timedelta

from cueline.deciders.session import Status
from cueline.events.inbox import StartAsked
from cueline.events.session import SessionContinued
from cueline.events.start import Schedule, stream_at
from cueline.events.stream import category_of, sibling
from cueline.testing.clock import NOON
from cueline.testing.crash import CrashPoint, World
from cueline.testing.fakes import asks_for, says
from tests.crash import story
from tests.crash.undisturbed import spread

MINUTE = timedelta(minutes=1)
SERIES = [
    story.SESSION,
    *(stream_at(story.SESSION, NOON + each * MINUTE) for each in range(2, 4)),
]
"""Two that start their work, and one that rests."""


async def begin():
    place, agent = story.outside([asks_for(("pay", {"n": 6})), says("All is paid.")])
    schedule = Schedule(at=NOON + MINUTE, every_seconds=MINUTE.total_seconds())
    await place.start("story", agent, schedule=schedule)
    return place


async def drive(place, life=None):
    """Let a new process drive the series until half past the second minute."""
    world = World(place, life)
    for half_minutes in (1, 3, 5):
        until = NOON + half_minutes * MINUTE / 2
        while not world.life.dead and place.clock.now() < until:
            await world.rest(within=60)
            for stream in SERIES:
                await story.answer(place, stream)
            await place.clock.advance(min(10.0, (until - place.clock.now()).total_seconds()))
    if not world.life.dead:
        await world.rest(within=60)
    await world.kill()
    return world


async def undisturbed():
    return (await drive(await begin())).life.points


POINTS = asyncio.run(undisturbed())


async def started(place):
    """Return how often each session was asked for, and started its work."""
    asked, begun = [], []
    async for recorded in place.store.read_all():
        stream = sibling(recorded.stream, "session")
        if category_of(recorded.stream) == "inbox" and recorded.type == StartAsked.__name__:
            asked.append(stream)
    for stream in asked:
        continued = [f for f in await place.facts(stream) if isinstance(f, SessionContinued)]
        begun += [stream] * any(each.by == "deadline" for each in continued)
    return asked, begun


def test_there_are_points_enough(figures):
    figures(f"{len(POINTS)} points to be killed at in a series of two sessions and the next one")

    assert len(POINTS) >= 20


# I2, I7
@spread("point", range(len(POINTS)))
async def test_each_time_starts_one_session_wherever_a_process_dies(point):
    place = await begin()
    assert (await drive(place, CrashPoint(point))).life.dead

    survivor = await drive(place)

    assert [] == survivor.troubles
    assert (SERIES, SERIES[:2]) == await started(place)
    statuses = [(await place.state(each)).status for each in SERIES]
    assert [Status.COMPLETED, Status.COMPLETED, Status.WAITING] == statuses
    keys = [start.key for start in place.executor.starts]
    assert sorted(set(keys)) == sorted(f"{each}/1.0" for each in SERIES[:2])
