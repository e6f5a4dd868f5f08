"""A child that goes on by itself after its call has timed out, in one process on fakes."""

from datetime import timedelta

from cueline.deciders.session import Status
from cueline.events.session import MessageReceived, ToolFailed
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says
from tests.actors.test_delegation import CHILD, LOOK, SESSION, Family

SLOW = 1_000.0


def family():
    """Return a session whose child needs longer than its call may take."""
    replies = {
        SESSION: [LOOK, says("I go on."), says("I heard.")],
        CHILD: [asks_for(("read", {})), says("I saw it.")],
    }
    made = Family(replies)
    tools = tuple(t.model_copy(update={"on_timeout": "leave"}) for t in made.agent.tools)
    made.agent = made.agent.model_copy(update={"tools": tools})

    async def slow(order):
        await made.outside.clock.sleep(SLOW)
        return "read"

    made.outside.executor.tools["read"] = slow
    return made


async def pass_time(world, *moments):
    for seconds in moments:
        await world.outside.clock.advance(seconds)
        await world.dispatcher.tick()
        await world.outside.clock.settle()


# I14, 003-057
async def test_the_late_end_of_a_child_wakes_its_parent():
    lead = family()
    began = lead.outside.clock.now()
    await lead.outside.start("s", lead.agent, open=True)
    world = World(lead.outside)
    await pass_time(world, 0, 601, 1)

    (failed,) = await lead.of(ToolFailed)
    assert "child_timeout" == failed.kind
    assert Status.IDLE is await lead.status()
    assert Status.RUNNING is await lead.status(CHILD)

    await pass_time(world, SLOW, 1)
    assert began + timedelta(seconds=SLOW) < lead.outside.clock.now()
    assert Status.COMPLETED is await lead.status(CHILD)
    assert [True] == [fact.late for fact in await lead.of(MessageReceived)]
    messages = await lead.outside.transcript(SESSION)
    assert 1 == sum(b"I saw it." in each for each in messages)
    assert Status.IDLE is await lead.status()
    assert "I heard." == (await lead.outside.state(SESSION)).turn.answer


# I13, I2: the deadline that passed is a fact, so another host knows that the end is late.
async def test_another_host_tells_the_late_end_once():
    lead = family()
    await lead.outside.start("s", lead.agent, open=True)
    first = World(lead.outside)
    await pass_time(first, 0, 601, 1)
    await first.kill()

    second = World(lead.outside)
    await pass_time(second, 30, 1, SLOW, 30, SLOW, 1)

    assert [True] == [fact.late for fact in await lead.of(MessageReceived)]
    assert Status.IDLE is await lead.status()
