"""What one session has in hand."""

import asyncio

import pytest

from cueline.actors.in_flight import InFlightEffects
from cueline.actors.timers import Timers
from cueline.deciders.session.due import AskApproval, CallModel, RecoverTool, RunTool
from cueline.events.session import ModelFailed
from cueline.testing.clock import NOON, FakeClock

CALL = CallModel("1.m", 1)
RUN = RunTool("1.0", 1, "key", "digest")
ASK = AskApproval("1.0", "7f3a.1.0.1", "digest", "may_it_run")
FAILED = ModelFailed(effect="1.m", attempt=1, kind="timeout", message="", failed_at=NOON)


@pytest.fixture
def hand():
    return InFlightEffects(Timers(FakeClock()))


async def failing(_):
    return [FAILED]


async def bringing_nothing(_):
    return []


async def follow(_):
    await asyncio.get_running_loop().create_future()


async def test_an_effect_is_in_flight_until_its_facts_are_taken(hand):
    hand.take_up(CALL, failing)
    await hand.wait(None)
    before = (hand.has(CALL), hand.empty)

    assert [FAILED] == hand.take()
    assert ((True, False), (False, True)) == (before, (hand.has(CALL), hand.empty))


async def test_an_effect_without_facts_is_removed_too(hand):
    hand.take_up(RUN, bringing_nothing)
    await hand.wait(None)

    assert [] == hand.take()
    assert hand.empty


# Else a decision could be read before the session knows that it had asked.
async def test_a_question_is_on_its_way_until_its_facts_are_taken(hand):
    hand.take_up(ASK, bringing_nothing)
    await hand.wait(None)
    before = hand.asks("1.0")
    hand.take()

    assert (True, False) == (before, hand.asks("1.0"))


async def test_a_call_has_one_name_for_run_and_recovery(hand):
    hand.take_up(RUN, follow)

    assert hand.has(RecoverTool("1.0", 1, "key", "runner-1"))
    assert not hand.has(CALL)
    hand.drop()


async def test_what_an_effect_raises_ends_the_drive(hand):
    async def breaking(_):
        raise ValueError("a bug")

    hand.take_up(CALL, breaking)
    await hand.wait(None)

    with pytest.raises(ValueError, match="a bug"):
        hand.take()
    assert not hand.empty
