"""The clock and the crash kit that the other tests stand on."""

import asyncio
from types import SimpleNamespace

import pytest

from cueline.errors import ProviderRefusedError
from cueline.testing.clock import NOON, FakeClock
from cueline.testing.crash import CrashPoint
from cueline.testing.fakes import TurnModel, says


async def test_sleepers_wake_in_order_and_at_their_time():
    clock = FakeClock()
    woken = []

    async def sleep(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, (clock.now() - NOON).total_seconds()))

    tasks = [asyncio.create_task(sleep(seconds)) for seconds in (3, 1, 2)]
    await clock.advance(2.5)

    assert [(1, 1), (2, 2)] == woken
    await clock.advance(1)
    assert 3 == len(woken)
    await asyncio.gather(*tasks)


async def test_a_sleeper_that_was_cancelled_is_not_waited_for():
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    task.cancel()
    await clock.settle()

    assert clock.next_at is None


async def test_waiting_for_what_never_comes_fails():
    with pytest.raises(AssertionError, match="does not come about"):
        await FakeClock().run_until(lambda: False, within=60)


async def test_who_is_dead_goes_nowhere():
    life = CrashPoint(dies_at=1)
    await life.reach("one")

    for point in ("two", "three"):
        task = asyncio.create_task(life.reach(point))
        await FakeClock().settle()
        assert not task.done()
        task.cancel()

    assert ["one", "two"] == life.points


async def test_a_model_that_is_asked_for_more_than_it_has_fails_loudly():
    model = TurnModel([says("one")])

    with pytest.raises(ProviderRefusedError, match="no reply for turn 2"):
        await model.reply(SimpleNamespace(turn=2, attempt=1, effect="2.m"))
