"""Kill the shipped chain `implement-and-review`, or its agents, at every point there is."""

import asyncio
from itertools import pairwise

from cueline.deciders.session import Status
from cueline.events.inbox import ChildEnded, StartAsked
from cueline.events.session import SessionCompleted, ToolStarted
from cueline.events.stream import sibling
from cueline.testing.fakes import asks_for, says
from tests.crash import chain, story
from tests.crash.chain import person, place_of, shipped_chain
from tests.crash.delegation import SESSION
from tests.crash.undisturbed import Undisturbed, spread

IMPLEMENT, REVIEW = CHILDREN = chain.CHILDREN[:2]
TREE = (SESSION, *CHILDREN)
VERDICT = {"verdict": "issues_found", "issues": ["it is late"]}
REPLIES = {
    IMPLEMENT: [asks_for(("pay", {})), says("It is done.")],
    REVIEW: [asks_for(("read", {})), says(f"{VERDICT}".replace("'", '"'))],
}


CHAIN = shipped_chain("implement-and-review")


def outside(_said=None):
    return place_of(REPLIES), CHAIN


async def drive(place, life=None):
    return await story.drive(place, life, go_on=person(TREE))


WHOLE = Undisturbed(outside, drive)


async def all_events():
    return [event async for event in WHOLE.place.store.read_all()]


def boundaries():
    """Return the positions after which the log can be cut: an append is there or not."""
    events = asyncio.run(all_events())
    return [e.position for e, after in pairwise(events) if after.seq == 0]


async def check_chain(place):
    """Check that each agent ran once, and that the end is that of an undisturbed chain."""
    for stream in TREE:
        assert Status.COMPLETED is (await place.state(stream)).status, stream
    for child in CHILDREN:
        inbox = await place.facts(sibling(child, "inbox"))
        assert 1 == sum(isinstance(fact, StartAsked) for fact in inbox), child
    told = [
        f.child for f in await place.facts(sibling(SESSION, "inbox")) if isinstance(f, ChildEnded)
    ]
    assert list(CHILDREN) == told
    end = (await place.facts(SESSION))[-1]
    assert isinstance(end, SessionCompleted)
    assert VERDICT == end.value
    paid = [start.key for start in place.executor.starts if start.tool == "pay"]
    assert len(paid) == len(set(paid)) == 1


# 003-050, 003-075: implement, then review, whose verdict is structured.
async def test_an_undisturbed_chain_ends_with_the_verdict_of_the_review():
    await check_chain(WHOLE.place)

    goals = [(await WHOLE.place.state(child)).agent.name for child in CHILDREN]

    assert ["implement", "review"] == goals


def test_there_are_points_enough(figures):
    figures(f"{len(WHOLE.points)} points to be killed at in a chain of two agents")

    assert len(WHOLE.points) >= 30


# 003-051, 003-057: what comes next in a chain is never lost, and never starts twice.
@WHOLE.at_every_point
async def test_a_chain_that_is_killed_ends_the_same(point):
    await check_chain(await WHOLE.killed(point))


# I13
@spread("position", boundaries())
async def test_a_chain_goes_on_from_every_prefix_of_its_log(position):
    place = await story.cut(WHOLE.place, position, None, outside)
    for fact in await place.facts(IMPLEMENT):
        if isinstance(fact, ToolStarted):
            place.executor.starts.append(story.Start(fact.tool, f"{IMPLEMENT}/{fact.effect}", 1, 0))

    survivor = await drive(place)

    assert [] == survivor.troubles
    await check_chain(place)
