"""Kill a session that reads a grant after its deadline at every point, and go on (I9, I14).

The person answers in time, while nothing looks; whoever does comes when the deadline has passed.
"""

from cueline.deciders.session import Status
from cueline.events.session import ApprovalRequested, ApprovalResolved, ToolStarted
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says
from tests.crash import story
from tests.crash.undisturbed import Undisturbed

SAID = [asks_for(("deploy", {"n": 1}), ("read", {"n": 2})), says("All is done.")]
TOO_LATE = 25 * 3600.0


def outside():
    return story.outside(SAID)


async def drive(place, life=None):
    """Let a new process drive the session; what people answer, it reads too late."""
    world = World(place, life)
    world._following.cancel()
    world.host.activate(story.SESSION)
    await world.rest(within=60)
    while not world.life.dead and await story.answer(place):
        await place.clock.advance(TOO_LATE)
        await world.rest(within=60)
    await world.kill()
    return world


WHOLE = Undisturbed(outside, drive)


async def assert_asked_and_run_once(place):
    facts = await place.facts(story.SESSION)
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await WHOLE.check_told(place)
    # I5, I9
    assert 1 == sum(start.tool == "deploy" for start in place.executor.starts)
    asked = [f.question for f in facts if isinstance(f, ApprovalRequested)]
    assert 1 == asked.count("may_it_run")


async def test_what_is_killed_here_is_a_grant_that_is_read_late():
    facts = await WHOLE.place.facts(story.SESSION)

    assert [True] == [f.valid_until is not None for f in facts if isinstance(f, ApprovalResolved)]
    assert "granted by ann" in [f.rule for f in facts if isinstance(f, ToolStarted)]
    await assert_asked_and_run_once(WHOLE.place)


@WHOLE.at_every_point
async def test_a_killed_session_asks_once_and_runs_once(point):
    await assert_asked_and_run_once(await WHOLE.killed(point))
