"""Kill a session that delegates, or its children, at every point there is, and go on."""

import asyncio
from itertools import pairwise

from cueline.deciders.session import Status
from cueline.events.inbox import ChildEnded, MessageSent, StartAsked
from cueline.events.session import CallDelegated, MessageReceived, ToolReturned
from cueline.events.stream import sibling
from cueline.testing.fakes import asks_for, says
from cueline.tools.catalogue import child_result_tool
from tests.crash import story
from tests.crash.delegation import CHILDREN, GRANDCHILD, SESSION, outside
from tests.crash.undisturbed import Undisturbed, spread

TREE = (SESSION, *CHILDREN, GRANDCHILD)


async def nobody(place, session):
    """Bring nothing: no person is needed, but of a call in doubt."""
    asked = [await story.answer(place, each) for each in TREE if await place.facts(each)]
    return any(asked)


async def drive(place, life=None):
    return await story.drive(place, life, go_on=nobody)


WHOLE = Undisturbed(outside, drive)


async def all_events():
    return [event async for event in WHOLE.place.store.read_all()]


def boundaries():
    """Return the positions after which the log can be cut: an append is there or not."""
    events = asyncio.run(all_events())
    return [e.position for e, after in pairwise(events) if after.seq == 0]


async def check_tree(place):
    """Check that each child began once, ended once, and was told of once."""
    for stream in TREE:
        assert Status.COMPLETED is (await place.state(stream)).status, stream
    for child in TREE[1:]:
        inbox = await place.facts(sibling(child, "inbox"))
        assert 1 == sum(isinstance(fact, StartAsked) for fact in inbox), child
    for parent, children in ((SESSION, CHILDREN), (CHILDREN[1], (GRANDCHILD,))):
        facts = await place.facts(parent)
        begun = [fact.child for fact in facts if isinstance(fact, CallDelegated)]
        messages = [fact.message for fact in facts if isinstance(fact, MessageReceived)]
        ended = [each.child for each in messages if isinstance(each, ChildEnded)]
        closed = [f.child for f in facts if isinstance(f, ToolReturned) and f.child]
        assert list(children) == begun
        assert sorted(children) == sorted(ended) == sorted(closed)
    assert 3 == (await place.store.head("tree-default/story")).version
    starts = [start.key for start in place.executor.starts if start.tool == "pay"]
    assert len(starts) == len(set(starts))


def test_there_are_points_enough(figures):
    figures(f"{len(WHOLE.points)} points to be killed at in a tree of four sessions")

    assert len(WHOLE.points) >= 60


# 003-051, 003-057, I2, I7: a start or an end is never lost, and never twice.
@WHOLE.at_every_point
async def test_a_tree_that_is_killed_ends_as_if_nothing_had_happened(point):
    place = await WHOLE.killed(point)

    await check_tree(place)
    await WHOLE.check_told(place)


# I13
@spread("position", boundaries())
async def test_a_tree_goes_on_from_every_prefix_of_its_log(position):
    place = await story.cut(WHOLE.place, position, None, outside)
    for fact in await place.facts(CHILDREN[1]):
        if fact.type == "ToolStarted":
            place.executor.starts.append(
                story.Start(fact.tool, f"{CHILDREN[1]}/{fact.effect}", 1, 0)
            )
    survivor = await drive(place)

    assert [] == survivor.troubles
    await check_tree(place)


# 003-057: the end of a child that nobody waits for is one message, wherever a process dies.
CALLBACK = {
    SESSION: [
        asks_for(("look", {"goal": "see", "mode": "async_callback"})),
        says("I go on."),
        says("I heard."),
    ],
    CHILDREN[0]: [asks_for(("read", {})), says("I saw it.")],
}


def calling_back(said=None):
    return outside(CALLBACK)


LATER = Undisturbed(calling_back, drive)


@LATER.at_every_point
async def test_a_callback_is_told_once_wherever_a_process_dies(point):
    place = await LATER.killed(point)

    assert Status.COMPLETED is (await place.state(SESSION)).status
    assert Status.COMPLETED is (await place.state(CHILDREN[0])).status
    told = [m for m in await place.transcript(SESSION) if b"original_parameters" in m]
    assert 1 == len(told)
    assert b"I saw it." in told[0]
    ended = await place.facts(sibling(SESSION, "inbox"))
    assert 1 == sum(isinstance(fact, ChildEnded) for fact in ended)


# 001-019, C51: nobody is told of the end of a child that is asked for, but its end is kept.
POLL = {
    SESSION: [
        asks_for(("look", {"goal": "see", "mode": "async_poll"})),
        says("I go on."),
        asks_for(("child_result", {"session": "story.1.0"})),
        says("I know."),
    ],
    CHILDREN[0]: [asks_for(("read", {})), says("I saw it.")],
}


def polling():
    place, agent = outside(POLL)
    return place, agent.model_copy(update={"tools": (*agent.tools, child_result_tool())})


async def ask_later(place, session):
    """Have the idle parent ask how its child ended, once."""
    if Status.IDLE is not (await place.state(SESSION)).status:
        return await nobody(place, session)
    said = [f for f in await place.facts(sibling(SESSION, "inbox")) if isinstance(f, MessageSent)]
    if not said:
        await place.say(SESSION, MessageSent(text="How did it end?", lane="followup"))
    return not said


async def ask_and_drive(place, life=None):
    return await story.drive(place, life, go_on=ask_later)


ASKED = Undisturbed(polling, ask_and_drive, open=True)


@ASKED.at_every_point
async def test_the_end_of_a_child_is_kept_until_it_is_asked_for(point):
    place = await ASKED.killed(point)

    assert Status.COMPLETED is (await place.state(CHILDREN[0])).status
    assert Status.IDLE is (await place.state(SESSION)).status
    ended = await place.facts(sibling(SESSION, "inbox"))
    assert 1 == sum(isinstance(fact, ChildEnded) for fact in ended)
    answers = [m for m in await place.transcript(SESSION) if b"original_parameters" in m]
    assert 1 == len(answers)
    assert b"I saw it." in answers[0]
    await ASKED.check_told(place)
