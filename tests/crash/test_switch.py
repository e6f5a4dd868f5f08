"""Kill a session whose model changes and that summarises, at every point (000-015, 002-021)."""

from cueline.deciders.session import Status
from cueline.events.session import AgentChanged, ContextCompacted, PromptPrefixChanged
from tests.crash import story, switched
from tests.crash.undisturbed import Undisturbed

WHOLE = Undisturbed(switched.outside, switched.drive)


async def facts_of(place, kind):
    return [fact for fact in await place.facts(story.SESSION) if isinstance(fact, kind)]


async def check_end(place):
    """Check that the session ended as if nothing had happened."""
    state = await place.state(story.SESSION)
    assert (Status.COMPLETED, "other") == (state.status, state.agent.provider)
    (compacted,) = await facts_of(place, ContextCompacted)
    assert (7, 8) == (compacted.cut.messages, compacted.cut.of)
    assert [AgentChanged(model=switched.OTHER)] == await facts_of(place, AgentChanged)
    reasons = [fact.reason for fact in await facts_of(place, PromptPrefixChanged)]
    assert ["model_switched", "compacted"] == reasons
    await WHOLE.check_told(place)


async def test_undisturbed_it_changes_its_model_and_summarises():
    await check_end(WHOLE.place)

    asked = [(each.agent.provider, each.effect) for each in WHOLE.place.model.asked]
    turns = [("fake", "1.m"), ("fake", "2.m")]
    assert [*turns, *(("other", f"{n}") for n in ("3.m", "3.c", "4.m", "5.m"))] == asked
    assert 3 == len(WHOLE.place.model.asked[4].messages)


@WHOLE.at_every_point
async def test_killed_at_any_point_it_ends_the_same(point):
    await check_end(await WHOLE.killed(point))


@WHOLE.after_every_event
async def test_cut_after_any_event_it_ends_the_same(position):
    await check_end(await WHOLE.cut(position, switched.SAID))
