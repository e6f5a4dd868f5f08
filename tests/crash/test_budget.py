"""Kill the process of a session with a budget at every point there is, and go on (I8).

A point is before or after an append, to the session's stream or the budget's:
so also between reserve and start, start and reply, reply and settle, settle
and end.
"""

import asyncio
from decimal import Decimal

import pytest

from cueline.deciders.budget import BUDGET
from cueline.deciders.session import Status
from cueline.events.agent import Limits
from cueline.events.budget import CostReleased, CostReserved, CostSettled
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.message import Cost
from cueline.events.session import ModelReplied, ModelStarted, ReservationClosed
from cueline.testing.crash_point import CrashPoint
from cueline.testing.fakes import TurnModel, asks_for, says
from tests.crash import story
from tests.crash.undisturbed import Undisturbed, spread

SAID = [asks_for(("read", {"n": 1})), asks_for(("save", {"n": 2})), says("Done.")]
LIMIT = Decimal("2.00")
PRICE = Decimal("0.04")
BOUND = Decimal("0.30")


def outside():
    place, agent = story.outside(SAID)
    priced(place)
    return place, agent.model_copy(update={"limits": Limits(max_cost=LIMIT)})


def priced(place):
    place.bound = lambda agent, sent, counted: (sent, BOUND)
    place.price = lambda agent, model, usage: Cost(usd=PRICE, prices="list")
    return place


async def begun(life=None):
    place, agent = outside()
    await place.start("story", agent)
    return place, await story.drive(place, life)


WHOLE = Undisturbed(outside)
POINTS = WHOLE.points
at_every_point = WHOLE.at_every_point


async def folded(place, stream="budget-default/story"):
    return BUDGET.replay(await place.facts(stream))


async def check_paid(place, *streams):
    """Check that nothing is held, nothing was paid twice, and the ledger says what the logs say."""
    budget = await place.facts("budget-default/story")
    state = BUDGET.replay(budget)
    for session in streams or (story.SESSION,):
        node = state.nodes[session]
        facts = await place.facts(session)
        assert node.held is None, "something is held after the end"
        closed = [f for f in facts if isinstance(f, ReservationClosed)]
        assert node.own.usd == sum(f.usd for f in closed), "the ledger is not the log's sum"
        told = {(f.effect, f.attempt): f.usd for f in closed}
        for reply in (f for f in facts if isinstance(f, ModelReplied)):
            assert told[reply.effect, reply.attempt] == reply.cost.usd
        granted = {(f.effect, f.attempt) for f in budget if isinstance(f, CostReserved)}
        assert granted >= {(f.effect, f.attempt) for f in facts if isinstance(f, ModelStarted)}
    over = [(f.session, f.effect, f.attempt) for f in budget if isinstance(f, ENDS)]
    assert len(over) == len(set(over)), "a call was closed twice"
    top = state.nodes[story.SESSION]
    assert top.settled.usd + top.reserved.usd <= LIMIT


ENDS = (CostSettled, CostReleased)


@at_every_point
async def test_a_killed_session_pays_each_call_once(point):
    # 000-003, 000-006, 004-083: what was lost may have been billed, and counts in full.
    place, died = await begun(CrashPoint(point))
    assert died.life.dead

    survivor = await story.drive(place)

    assert [] == survivor.troubles
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await check_paid(place)


@pytest.mark.parametrize("second", [2, 5, 9])
@pytest.mark.parametrize("point", range(0, len(POINTS), 3))
async def test_a_session_that_is_killed_twice_pays_each_call_once(point, second):
    place, _ = await begun(CrashPoint(point))
    await story.drive(place, CrashPoint(second))

    await story.drive(place)

    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await check_paid(place)


@at_every_point
async def test_a_session_that_is_killed_and_stopped_holds_nothing(point):
    place, _ = await begun(CrashPoint(point))
    await place.say(story.SESSION, StopAsked())

    await story.drive(place)

    state = await place.state(story.SESSION)
    assert state.finished
    if story.SESSION in (await folded(place)).nodes:
        await check_paid(place)


@at_every_point
async def test_a_session_that_is_killed_and_paused_holds_nothing_while_it_rests(point):
    place, _ = await begun(CrashPoint(point))
    await place.say(story.SESSION, PauseAsked())
    await story.drive(place)
    state = await folded(place)
    assert state.nodes == {} or state.nodes[story.SESSION].held is None

    await place.say(story.SESSION, ResumeAsked())
    await story.drive(place)

    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await check_paid(place)


@WHOLE.after_every_event
async def test_a_log_cut_after_any_event_is_paid_to_its_end(position):
    # I13: also with half a reservation.
    place = priced(await story.cut(WHOLE.place, position, SAID))

    survivor = await story.drive(place)

    assert [] == survivor.troubles
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await check_paid(place)


@pytest.mark.parametrize("position", range(1, WHOLE.events + 1, 2))
async def test_a_log_cut_after_any_event_takes_the_next_message(position):
    # I7
    place = priced(await story.cut(WHOLE.place, position, SAID))
    await place.say(story.SESSION, MessageSent(lane="note", text="One more thing."))

    await story.drive(place)

    inbox = await place.store.head("inbox-default/story")
    assert inbox.version == (await place.state(story.SESSION)).inbox_read


class FickleModel(TurnModel):
    """A model whose vendor counts prompts for a while."""

    counts = True

    async def count(self, _request):
        return 30 if self.counts else None


async def counted(life=None):
    """Drive a session that fits its limit only by the vendor's count."""
    place, agent = outside()
    place.model = FickleModel(SAID)
    place.bound = lambda agent, sent, count: (sent, Decimal(count or 300) / 100)
    await place.start("story", agent)
    return place, await story.drive(place, life)


COUNTED = asyncio.run(counted())[1].life.points


@spread("point", range(len(COUNTED)))
async def test_a_session_whose_prompts_are_counted_no_more_stays_within_its_limit(point):
    # I8: what was granted by a count stays granted, and no more than that is held.
    place, _ = await counted(CrashPoint(point))
    place.model.counts = False

    await story.drive(place)

    budget = await place.facts("budget-default/story")
    for length in range(len(budget)):
        top = BUDGET.replay(budget[: length + 1]).nodes[story.SESSION]
        assert top.settled.usd + top.reserved.usd <= LIMIT
    state = await place.state(story.SESSION)
    assert state.finished or state.waiting.kind == "budget"
    assert top.held is None


def test_there_are_points_between_all_steps_of_a_call():
    assert {"after CostReserved", "before ModelStarted", "before the model"} <= set(POINTS)
    assert any(point.startswith("before CostSettled") for point in POINTS)
    assert "before ReservationClosed, SessionCompleted" in POINTS
