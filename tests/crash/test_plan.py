"""Kill a session with a plan at every point there is, and go on."""

import asyncio
from itertools import pairwise

from cueline.deciders.session import Status
from cueline.events.inbox import StartAsked
from cueline.events.session import SessionCompleted
from cueline.events.stream import sibling
from tests.crash import story
from tests.crash.planned import CHILD, SESSION, VALUE, drive, outside
from tests.crash.undisturbed import Undisturbed, spread

WHOLE = Undisturbed(outside, drive)
ONCE = ("pay", "deploy")
"""Tools that must not run twice."""


async def all_events():
    return [event async for event in WHOLE.place.store.read_all()]


def boundaries():
    """Return the positions after which the log can be cut: an append is there or not."""
    events = asyncio.run(all_events())
    return [e.position for e, after in pairwise(events) if after.seq == 0]


async def check_end(place):
    """Check that the session ended as undisturbed, and that nothing ran or began twice."""
    last = (await place.facts(SESSION))[-1]
    assert isinstance(last, SessionCompleted), last
    assert (VALUE, True) == (last.value, last.partial)
    assert Status.COMPLETED is (await place.state(CHILD)).status
    inbox = await place.facts(sibling(CHILD, "inbox"))
    assert 1 == sum(isinstance(fact, StartAsked) for fact in inbox)
    starts = [start.key for start in place.executor.starts if start.tool in ONCE]
    assert len(starts) == len(set(starts)) == 3
    assert {"completed", "failed", "skipped"} == {
        each.status for each in (await place.state(SESSION)).progress.over.values()
    }


def test_there_are_points_enough(figures):
    figures(f"{len(WHOLE.points)} points to be killed at in a session with a plan")

    assert len(WHOLE.points) >= 50


# 004-040, 004-041, 003-016, 003-052, 003-054, I2, I7, I13: how far it is follows from its log.
# What was done counts, and only the rest is done.
@WHOLE.at_every_point
async def test_a_plan_that_is_killed_ends_as_if_nothing_had_happened(point):
    await check_end(await WHOLE.killed(point))


@spread("position", boundaries())
async def test_a_plan_goes_on_from_every_prefix_of_its_log(position):
    place = await story.cut(WHOLE.place, position, None, outside)
    for fact in await place.facts(CHILD):
        if fact.type == "ToolStarted":
            key = f"{CHILD}/{fact.effect}"
            place.executor.starts.append(story.Start(fact.tool, key, 1, 0))
    survivor = await drive(place)

    assert [] == survivor.troubles
    await check_end(place)
