"""Whatever dies where: what is shown of the cost is the sum over the log.

000-021, 000-022, 000-045: over every point at which the story of the crash
kit can be killed, and any two of them.
"""

from contextlib import closing
from decimal import Decimal

import pytest

from cueline.events.message import Cost
from cueline.events.session import ModelFailed, ModelReplied, ReservationClosed
from cueline.projections.cost import spent, total
from cueline.projections.summary import Summary
from cueline.projections.views import Views
from cueline.testing.crash import CrashPoint
from tests.crash import story
from tests.crash.test_kill import POINTS
from tests.crash.undisturbed import spread

EACH = Decimal("0.012345678901234567")


async def killed(*points):
    place, agent = story.outside()
    place.price = lambda *_: Cost(usd=EACH, prices="test")
    await place.start("story", agent)
    for point in points:
        await story.drive(place, CrashPoint(point))
    return place


async def costs(place):
    """Return the sum over the log, and what read models and the summary say."""
    with closing(Views(":memory:")) as views:
        await views.catch_up(place.store)
        shown = total(spent(views.db)).cost
    tally, logged = Summary(), Decimal(0)
    for fact in await place.facts(story.SESSION):
        tally = tally.after(fact, place.clock.now())
        if isinstance(fact, ModelReplied | ModelFailed) and fact.cost is not None:
            logged += fact.cost.usd
        if isinstance(fact, ReservationClosed) and fact.outcome == "estimated":
            logged += fact.usd
    return logged, shown, tally.cost


@spread("point", range(len(POINTS)))
async def test_the_total_is_the_sum_over_the_log_at_the_kill_and_after_it(point):
    place = await killed(point)
    logged, shown, told = await costs(place)
    assert logged == shown == told

    await story.drive(place)
    logged, shown, told = await costs(place)
    assert logged == shown == told
    assert len(story.SAID) * EACH == logged


@pytest.mark.parametrize("second", [2, 5, 9])
@pytest.mark.parametrize("point", range(0, len(POINTS), 5))
async def test_the_total_is_the_sum_over_the_log_after_two_kills(point, second):
    place = await killed(point, second, None)

    logged, shown, told = await costs(place)

    assert logged == shown == told
