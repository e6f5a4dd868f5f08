"""The relay to runners outside of the cluster, and the JSON that it carries."""

import asyncio
import json
import socket

import pytest

from cueline.actors.runner import CallName, ToolReport
from cueline.actors.runner_desk import ActorReply, RunnerReply, RunnerRequest
from cueline.actors.runner_relay import RelayLink, RunnerRelay, serve_relay
from cueline.actors.runner_wire import json_of_reply, json_of_request, reply_of, request_of
from cueline.actors.tool_port import ReconcileFinding, ToolOrder
from cueline.errors import (
    ClusterError,
    ConfigError,
    RunnerBusyError,
    RunnerGoneError,
    StaleOrderError,
)
from cueline.events.agent import ToolSpec, Workspace
from cueline.stores.waiting import take_turns

RUNNER = "runner-0123456789ab"
NAME = CallName("session-default/7f3a", "session-default/7f3a/1.0", 1, RUNNER, 1)
ORDER = ToolOrder(
    session="session-default/7f3a",
    effect="1.0",
    attempt=1,
    key="session-default/7f3a/1.0",
    runner=RUNNER,
    epoch=3,
    tool=ToolSpec(name="t", description="d", parameters={}, target="m:t", digest="x"),
    arguments={"deep": [1, None, {"a": 2.5, "b": "ä"}]},
    workspace=Workspace(machine="m", path="/w"),
    digest="y",
    secrets=("KEY",),
)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def relay(clock):
    return RunnerRelay(lambda: clock[0])


def ask(number):
    return RunnerRequest(number, "outcome", NAME)


async def end(serving, link):
    """Close both ends."""
    serving.cancel()
    await asyncio.wait([serving])
    await asyncio.wait([link._listening])


async def requests(relay, received=(), name=None):
    _, found = await relay.requests(RUNNER, name or relay.id, received, 0)
    return found


async def test_a_request_comes_again_until_the_runner_has_confirmed_it(relay):
    relay.take(RUNNER, "host-1", [ask(7)])
    lost = await requests(relay)
    again = await requests(relay)
    rest = await requests(relay, [lost[0].number])

    assert NAME == lost[0].about
    assert (lost, []) == (again, rest)


async def test_a_request_that_comes_twice_is_one(relay):
    relay.take(RUNNER, "host-1", [ask(7)])
    relay.take(RUNNER, "host-1", [ask(7)])

    assert 1 == len(await requests(relay))


async def test_an_answer_goes_to_who_asked_under_its_own_number(relay):
    relay.take(RUNNER, "host-1", [ask(7)])
    relay.take(RUNNER, "host-2", [ask(7)])
    first, second = await requests(relay)
    report = ToolReport("returned", b"ok")
    await relay.answer(RUNNER, relay.id, [RunnerReply(second.number, ActorReply(report))])

    assert [] == await relay.replies(RUNNER, "host-1", [], 0)
    assert [RunnerReply(7, ActorReply(report))] == await relay.replies(RUNNER, "host-2", [], 0)
    assert [] == await relay.replies(RUNNER, "host-2", [7], 0)
    assert [first] == await requests(relay)


async def test_an_answer_to_another_relay_or_to_nobody_is_dropped(relay):
    relay.take(RUNNER, "host-1", [ask(7)])
    (asked,) = await requests(relay)
    reply = RunnerReply(asked.number, ActorReply(None))
    await relay.answer(RUNNER, "another", [reply])
    await relay.answer(RUNNER, relay.id, [RunnerReply(999, ActorReply(None))])

    assert [] == await relay.replies(RUNNER, "host-1", [], 0)
    assert [asked] == await requests(relay, [asked.number], "another")


async def test_who_asked_the_relay_before_is_told_to_ask_again(relay):
    with pytest.raises(RunnerGoneError, match="started again"):
        await relay.replies(RUNNER, "host-1", [], 0)


async def test_a_runner_that_asks_for_nothing_is_silent(relay, clock):
    with pytest.raises(RunnerGoneError):
        relay.check(RUNNER)
    await requests(relay)
    relay.check(RUNNER)
    clock[0] += 41

    with pytest.raises(RunnerGoneError):
        relay.check(RUNNER)


async def test_a_runner_that_was_removed_long_ago_is_forgotten(relay, clock):
    relay.take(RUNNER, "host-1", [ask(7)])
    clock[0] += 4000
    await relay.requests("runner-000000000002", "", (), 0)

    assert [] == await requests(relay)


async def test_a_waiting_runner_gets_a_request_at_once(relay):
    waiting = asyncio.create_task(relay.requests(RUNNER, "", (), 60))
    await take_turns()
    relay.take(RUNNER, "host-1", [ask(1)])
    told, (asked,) = await waiting

    assert (relay.id, NAME) == (told, asked.about)


async def test_the_server_reaches_the_relay_of_the_process_that_started_it(relay):
    ours, theirs = socket.socketpair()
    serving = asyncio.create_task(serve_relay(relay, ours))
    link = RelayLink(theirs.detach())
    waiting = asyncio.create_task(link.requests(RUNNER, "", (), 60))
    await link.answer(RUNNER, relay.id, [])
    relay.take(RUNNER, "host-1", [ask(1)])
    _, (asked,) = await waiting
    late = asyncio.create_task(link.requests(RUNNER, relay.id, [asked.number], 60))
    await link.answer(RUNNER, relay.id, [RunnerReply(asked.number, ActorReply(None))])
    await end(serving, link)

    with pytest.raises(ClusterError):
        await late
    assert [RunnerReply(1, ActorReply(None))] == await relay.replies(RUNNER, "host-1", [], 0)


async def test_a_server_that_ends_lets_no_runner_wait(relay):
    ours, theirs = socket.socketpair()
    serving = asyncio.create_task(serve_relay(relay, ours))
    link = RelayLink(theirs.detach())
    here = asyncio.create_task(relay.requests(RUNNER, relay.id, (), 60))
    there = asyncio.create_task(link.requests(RUNNER, relay.id, (), 60))
    await link.answer(RUNNER, relay.id, [])
    link.drain()
    relay.drain()

    assert (relay.id, []) == await here == await there
    await end(serving, link)


async def test_an_error_of_the_relay_reaches_the_server():
    class Broken:
        async def answer(self, *_):
            raise ClusterError("the relay", "why")

    ours, theirs = socket.socketpair()
    serving = asyncio.create_task(serve_relay(Broken(), ours))
    link = RelayLink(theirs.detach())
    with pytest.raises(ClusterError, match="why"):
        await link.answer(RUNNER, "", [])
    await end(serving, link)


@pytest.mark.parametrize(
    "request_",
    [
        RunnerRequest(1, "execute", ORDER),
        RunnerRequest(2, "reconcile", ORDER),
        RunnerRequest(3, "cancel", NAME),
    ],
)
def test_a_request_stays_the_same_on_its_way(request_):
    assert request_ == request_of(json.loads(json.dumps(json_of_request(request_))))


@pytest.mark.parametrize(
    "value",
    [
        None,
        ToolReport("returned", b"\x00\xff", seconds=1.5, media_type="image/png", text=b"\xff"),
        ToolReport("failed", kind="timeout", message="late", retry_after=2.0),
        ReconcileFinding("happened", "yes"),
    ],
)
def test_an_answer_stays_the_same_on_its_way(value):
    reply = RunnerReply(1, ActorReply(value))

    assert reply == reply_of(json.loads(json.dumps(json_of_reply(reply))))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RunnerBusyError(RUNNER), RunnerBusyError),
        (StaleOrderError(RUNNER, "s", 1, 2), StaleOrderError),
        (ClusterError(RUNNER, "why"), ClusterError),
    ],
)
def test_an_error_stays_the_same_on_its_way(error, kind):
    told = json.loads(json.dumps(json_of_reply(RunnerReply(1, ActorReply(error=error)))))
    found = reply_of(told).answer.error

    assert isinstance(found, kind)
    assert "why" in str(found) if kind is ClusterError else str(error) == str(found)


# API10:2023 unsafe consumption of APIs
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"number": "one"},
        {"number": 1, "report": {"outcome": "odd"}},
        {"number": 1, "report": "text"},
        {"number": 1, "error": "StaleOrderError", "values": []},
        {"number": 1, "error": "os.system", "values": []},
        {"number": 1, "error": []},
        {"number": 1, "error": ["x"], "values": ["x"]},
    ],
)
def test_what_is_no_answer_is_refused(told):
    with pytest.raises(ConfigError):
        reply_of(told)
