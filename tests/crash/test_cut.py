"""Cut the log after each of its events: every prefix loads and goes on (I13)."""

import asyncio

from cueline.deciders.session import Status
from cueline.events.inbox import ForkPoint, MessageSent
from cueline.testing.fakes import says
from tests.crash import story
from tests.crash.undisturbed import Undisturbed, spread

WHOLE = Undisturbed()
VERSIONS = len(asyncio.run(WHOLE.place.facts(story.SESSION)))


@WHOLE.after_every_event
async def test_a_log_cut_after_any_event_goes_on_to_the_same_end(position):
    # 000-015, 000-032, 004-070, I4, I13
    place = await story.cut(WHOLE.place, position)

    survivor = await story.drive(place)

    assert [] == survivor.troubles
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await WHOLE.check_told(place)


@WHOLE.after_every_event
async def test_a_log_cut_after_any_event_takes_the_next_message(position):
    place = await story.cut(WHOLE.place, position)
    await place.say(story.SESSION, MessageSent(lane="note", text="One more thing."))

    await story.drive(place)

    inbox = await place.store.head("inbox-default/story")
    assert inbox.version == (await place.state(story.SESSION)).inbox_read


@spread("version", range(1, VERSIONS + 1))
async def test_a_fork_at_any_version_goes_on(version):
    # DESIGN 5: nothing in flight crosses a fork.
    place = await story.cut(WHOLE.place, WHOLE.events, [*story.SAID, says("And more.")])
    agent = (await place.state(story.SESSION)).agent
    point = ForkPoint(stream=story.SESSION, version=version, hash="")
    fork = await place.start("fork", agent, "Go on.", fork_of=point)

    survivor = await story.drive(place, session=fork)

    assert [] == survivor.troubles
    assert Status.COMPLETED == (await place.state(fork)).status
    assert "SessionTakenOver" not in await place.types(fork)
    assert b"Go on." in b"".join(await place.transcript(fork))
