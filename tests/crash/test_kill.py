"""Kill the process of a session at every point there is, and go on.

000-006, 000-015, 000-016, 000-064, 000-071, 004-004, C6, D1, D2.

The session has parallel read-only calls, an idempotent, an undeclared, a
reconcilable and an approval-gated one, a long binary output, and a tool that
the model invented. A point is before or after an append, an acquisition, a
blob, an answer of the model, or a tool's effect.
"""

import pytest

from cueline.deciders.session import Status
from cueline.testing.crash import CrashPoint
from tests.crash import story
from tests.crash.undisturbed import Undisturbed

WHOLE = Undisturbed()
POINTS, EVENTS = WHOLE.points, WHOLE.events
at_every_point = WHOLE.at_every_point


KILLED = {}
"""What became of each kill; several facts are stated of one."""


async def killed_at(point, second=None, **policy):
    """Return the outside after everything, and the calls that a kill cut short, by effect."""
    name = (point, second, *policy.values())
    if name not in KILLED:
        KILLED[name] = await kill_at(point, second, policy)
    return KILLED[name]


async def kill_at(point, second, policy):
    place, agent = story.outside(**policy)
    await place.start("story", agent)
    died = await story.drive(place, CrashPoint(point))
    assert died.life.dead
    cut_short = await story.open_calls(place)
    if second is not None:
        await story.drive(place, CrashPoint(second))
        cut_short |= await story.open_calls(place)
    survivor = await story.drive(place)
    assert [] == survivor.troubles
    return place, cut_short


def undeclared(cut_short):
    return {effect for effect, tool in cut_short.items() if tool in story.UNDECLARED}


async def assert_ended_as_if_nothing_had_happened(place, unknown):
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await WHOLE.check_told(place, unknown)


def assert_began_at_most_once(place, tools=story.UNDECLARED):
    starts = [start for start in place.executor.starts if start.tool in tools]
    assert len(starts) == len({start.key for start in starts})


def test_there_are_points_enough(figures):
    events = EVENTS + 2 * story.EFFECTS
    figures(f"{len(POINTS)} points to be killed at, {EVENTS} events to be cut after")

    assert len(POINTS) + EVENTS >= events
    assert len(POINTS) >= 70


@at_every_point
async def test_a_killed_session_ends_as_if_nothing_had_happened(point):
    # 000-002, 000-015, 000-032, 000-043, 004-048, C8, D1, I2, I4:
    # a person is asked about what is in doubt.
    place, cut_short = await killed_at(point)

    await assert_ended_as_if_nothing_had_happened(place, undeclared(cut_short))
    # I5: undeclared calls at most once, counted by the tools' own journal.
    assert_began_at_most_once(place, (*story.UNDECLARED, "post"))


@at_every_point
async def test_where_the_policy_says_so_the_model_is_told_that_an_outcome_is_unknown(point):
    # I5
    place, cut_short = await killed_at(point, in_doubt="tell")

    await assert_ended_as_if_nothing_had_happened(place, undeclared(cut_short))
    assert_began_at_most_once(place)


@at_every_point
async def test_what_may_not_be_repeated_is_in_doubt_exactly_once(point):
    # I5: and nothing else ever is.
    place, cut_short = await killed_at(point)

    not_repeatable = {e for e, tool in cut_short.items() if tool not in ("read", "save")}
    assert dict.fromkeys(not_repeatable, 1) == dict(await story.doubts(place))


@at_every_point
async def test_a_call_goes_on_in_a_runner_that_outlives_its_host(point):
    # 000-016: the runner is asked by key; nothing is ever in doubt, nothing runs twice.
    place, agent = story.outside()
    runner = story.runner_of(place)
    await place.start("story", agent)
    await story.drive(place, CrashPoint(point), runner)

    await story.drive(place, None, runner)

    assert {} == dict(await story.doubts(place))
    await assert_ended_as_if_nothing_had_happened(place, set())
    assert {1} == set(story.starts_of(place).values())


@pytest.mark.parametrize("second", [3, 5, 8])
@pytest.mark.parametrize("point", range(0, len(POINTS), 7))
async def test_a_session_survives_two_kills(point, second):
    # 000-006: also one in the middle of the recovery from another.
    place, _ = await killed_at(point, second)

    await WHOLE.check_told(place)
    assert_began_at_most_once(place)


@at_every_point
async def test_repeated_calls_keep_their_key_and_count_their_attempts(point):
    # I5: read-only and idempotent calls are run again under the same key.
    place, _ = await killed_at(point)

    attempts = [(start.key, start.attempt) for start in place.executor.starts]
    assert len(attempts) == len(set(attempts))
    assert story.EFFECTS == len({key for key, _ in attempts})


async def test_nothing_of_the_killed_side_has_an_effect():
    place, agent = story.outside()
    await place.start("story", agent)
    died = await story.drive(place, CrashPoint(20))

    await died.host.close()

    events = await place.store.last_position()
    await place.clock.advance(3600)
    assert events == await place.store.last_position()
