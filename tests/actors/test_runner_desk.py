"""The desk of a runner: many callers, each of whom gets its answers until it has confirmed them."""

import asyncio

import pytest

from cueline.actors.runner import CallName, ToolReport
from cueline.actors.runner_desk import (
    PAGE_BYTES,
    ActorReply,
    RunnerDesk,
    RunnerReply,
    RunnerRequest,
    first_of,
)
from cueline.errors import ClusterError, StaleOrderError
from cueline.stores.waiting import take_turns
from cueline.testing.fakes import JournalingExecutor
from tests.actors.session_harness import Valve, runner_on
from tests.actors.test_runner import name, order


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def valve():
    return Valve()


@pytest.fixture
def desk(clock, valve):
    runner = runner_on(JournalingExecutor({"pay": valve}))
    return RunnerDesk(runner, lambda: clock[0], forget_seconds=60)


def contents(replies):
    return [(each.number, each.answer.value.content) for each in replies]


async def test_an_answer_comes_until_it_is_confirmed(desk, valve):
    desk.take("host-1", [RunnerRequest(1, "execute", order())])
    waiting = asyncio.create_task(desk.replies("host-1", [], 60))
    await take_turns()
    running = desk.unsettled
    valve.opened.set()

    assert [(1, b"at last")] == contents(await waiting)
    assert [(1, b"at last")] == contents(await desk.replies("host-1", [], 0))
    assert [] == await desk.replies("host-1", [1], 0)
    assert [] == await desk.replies("host-2", [], 0)
    assert 2 == running


async def test_a_request_that_comes_twice_is_carried_out_once(desk, valve):
    valve.opened.set()
    asked = RunnerRequest(1, "execute", order())
    desk.take("host-1", [asked])
    desk.take("host-1", [asked])
    await desk.replies("host-1", [], 60)
    desk.take("host-1", [asked])
    await take_turns()

    assert 1 == valve.began
    assert 1 == len(await desk.replies("host-1", [], 0))


async def test_an_error_is_an_answer(desk):
    desk.take("host-1", [RunnerRequest(1, "outcome", name(runner="another"))])
    desk.take("host-1", [RunnerRequest(2, "outcome", CallName("s", "no key", 1, "r1", 1))])
    await take_turns()
    refused, broken = await desk.replies("host-1", [], 60)

    assert isinstance(refused.answer.error, StaleOrderError)
    assert isinstance(broken.answer.error, ClusterError)
    assert "ValueError" in str(broken.answer.error)


async def test_a_caller_that_is_gone_is_forgotten(desk, clock):
    desk.take("host-1", [RunnerRequest(1, "outcome", name())])
    await take_turns()
    clock[0] += 61
    desk.take("host-2", [])

    assert [] == await desk.replies("host-1", [], 0)


def test_large_answers_come_in_pages():
    half = ToolReport("returned", b"x" * (PAGE_BYTES * 2 // 3))
    replies = [RunnerReply(number, ActorReply(half)) for number in range(3)]

    assert [0, 1] == [each.number for each in first_of(replies)]


async def test_who_waits_no_longer_is_not_told():
    done = asyncio.get_running_loop().create_future()
    done.cancel()
    ActorReply(1).settle(done)
    other = asyncio.get_running_loop().create_future()
    ActorReply(error=ClusterError("a", "b")).settle(other)

    assert isinstance(other.exception(), ClusterError)
