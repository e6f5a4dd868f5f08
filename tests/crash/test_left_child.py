"""Kill a session whose child goes on after its time, at every point there is, and go on."""

from cueline.deciders.session import Status
from cueline.events.inbox import ChildEnded
from cueline.events.session import MessageReceived, ToolFailed
from cueline.testing.fakes import asks_for, says
from tests.crash import story
from tests.crash.delegation import CHILDREN, SESSION, outside
from tests.crash.undisturbed import Undisturbed

CHILD = CHILDREN[0]
REPLIES = {
    SESSION: [asks_for(("look", {"goal": "see"})), says("I go on."), says("I heard.")],
    CHILD: [asks_for(("read", {})), says("I saw it.")],
}


def slow_child(_said=None):
    """Return a place where the child works for longer than its call may take."""
    place, agent = outside(REPLIES)

    async def read(order):
        for _ in range(10):  # each is a moment at which the dispatcher looks
            await place.clock.sleep(100)
        return "read"

    place.executor.tools["read"] = read
    left = [tool.model_copy(update={"on_timeout": "leave"}) for tool in agent.tools]
    return place, agent.model_copy(update={"tools": tuple(left)})


async def drive(place, life=None):
    world = story.World(place, life)
    for stream in (SESSION, CHILD):
        if await place.facts(stream) or stream == SESSION:
            world.host.activate(stream)
    await world.rest(within=5_000)
    await world.kill()
    return world


WHOLE = Undisturbed(slow_child, drive, open=True)


# I2, I7, I14: the call has timed out once, and the late end is told once.
@WHOLE.at_every_point
async def test_the_late_end_of_a_child_is_told_once_wherever_a_process_dies(point):
    place = await WHOLE.killed(point)

    facts = await place.facts(SESSION)
    assert ["child_timeout"] == [f.kind for f in facts if isinstance(f, ToolFailed)]
    ends = [
        f for f in facts if isinstance(f, MessageReceived) and isinstance(f.message, ChildEnded)
    ]
    assert [True] == [fact.late for fact in ends]
    assert Status.IDLE is (await place.state(SESSION)).status
    assert Status.COMPLETED is (await place.state(CHILD)).status
    await WHOLE.check_told(place)


def test_there_are_points_enough(figures):
    figures(f"{len(WHOLE.points)} points to be killed at with a child that is left alone")

    assert len(WHOLE.points) >= 20
