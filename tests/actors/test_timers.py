"""One alarm clock for all who wait in a host."""

import asyncio
from datetime import timedelta

import pytest

from cueline.actors.timers import Timers
from cueline.testing.clock import NOON, FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def alarm(clock):
    return Timers(clock)


def waiting(alarm, seconds):
    future = asyncio.get_running_loop().create_future()
    alarm.set(future, NOON + timedelta(seconds=seconds))
    return future


async def test_each_is_woken_at_its_moment(alarm, clock):
    waits = [waiting(alarm, seconds) for seconds in (3, 1, 2)]

    await clock.advance(1)
    woken_first = [each.done() for each in waits]
    await clock.advance(1)

    assert [False, True, False] == woken_first
    assert [False, True, True] == [each.done() for each in waits]


async def test_a_moment_that_has_passed_wakes_at_once(alarm, clock):
    late = waiting(alarm, -1)

    await clock.advance(0)

    assert late.done()


async def test_who_is_dropped_is_not_woken(alarm, clock):
    dropped, other = waiting(alarm, 1), waiting(alarm, 1)
    alarm.drop(dropped)

    await clock.advance(1)

    assert (False, True) == (dropped.done(), other.done())


async def test_it_wakes_again_after_nobody_waited(alarm, clock):
    waiting(alarm, 1)
    await clock.advance(5)

    later = waiting(alarm, 6)
    await clock.advance(1)

    assert later.done()


async def test_many_wait_in_one_task(alarm, clock):
    before = len(asyncio.all_tasks())

    for seconds in range(100, 0, -1):
        waiting(alarm, seconds)
    await clock.settle()

    assert 1 == len(asyncio.all_tasks()) - before


async def test_a_closed_timer_wakes_no_waiter(alarm, clock):
    left = waiting(alarm, 1)

    alarm.close()
    await clock.advance(2)

    assert not left.done()
