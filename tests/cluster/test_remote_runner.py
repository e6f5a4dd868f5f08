import asyncio
import os
import pickle
import sys
from types import SimpleNamespace

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError

from cueline.actors.presence import deaf_seconds
from cueline.actors.runner import CallName, Runner
from cueline.actors.runner_desk import RunnerDesk
from cueline.actors.tool_port import ToolOutput
from cueline.cluster import runner as runners
from cueline.cluster.remote_runner import RemoteRunner
from cueline.cluster.runner import RunnerActor
from cueline.cluster.runner_directory import Directory
from cueline.errors import RunnerGoneError, StaleOrderError

SITE = SimpleNamespace(factory=SimpleNamespace(removal_seconds=8.0))
NAME = CallName("session-default/7f3a", "session-default/7f3a/1.0", 1, "runner-1", 1)


class Idle:
    async def call(self, order):
        return ToolOutput(b"", 0)

    async def close(self):
        pass


class InProcess(RemoteRunner):
    """Calls the actor as Ray would, counts the calls, and breaks when told to."""

    def __init__(self):
        super().__init__(None, "runner-1", "runner-1", "host-1")
        self.actor = RunnerActor(SITE, "runner-1")
        self.actor._runner = Runner("runner-1", Idle(), lambda: 0.0)
        self.actor._desk = RunnerDesk(self.actor._runner, lambda: 0.0, 8.0)
        self.actor._started.set()
        self.calls = []
        self.breaks = {}

    async def _take(self, requests):
        await self._ask_actor("take", requests)

    async def _fetch(self, received):
        return await self._ask_actor("reports", received, 5.0)

    async def _call_up(self):
        self.calls.append("ready")
        if "ready" in self.breaks:
            raise self.breaks["ready"]

    async def _ask_actor(self, method, *asked):
        self.calls.append(method)
        if method in self.breaks:
            raise self.breaks[method]
        asked = pickle.loads(pickle.dumps(asked))
        answer = await getattr(self.actor, method)("host-1", *asked)
        return pickle.loads(pickle.dumps(answer))


@pytest.fixture
def runner():
    return InProcess()


async def test_what_is_ordered_in_one_turn_of_the_loop_goes_in_one_call(runner):
    names = [CallName(NAME.session, f"{NAME.session}/1.{n}", 1, "runner-1", 1) for n in range(99)]
    outcomes = await asyncio.gather(*(runner.outcome(name) for name in names))

    assert [None] * 99 == outcomes
    assert 1 == runner.calls.count("take")


async def test_an_error_comes_back_as_itself(runner):
    with pytest.raises(StaleOrderError):
        await runner.outcome(CallName(NAME.session, NAME.key, 1, "runner-2", 1))


async def test_who_waits_for_a_runner_that_dies_learns_it_at_once(runner):
    runner.breaks["reports"] = ActorDiedError()

    with pytest.raises(RunnerGoneError):
        await runner.outcome(NAME)
    assert runner.died


async def test_an_order_that_may_not_have_arrived_is_not_waited_for(runner):
    runner.breaks["take"] = ActorUnavailableError("away", None)

    with pytest.raises(RunnerGoneError):
        await runner.outcome(NAME)
    assert not runner.died


async def test_a_sign_of_life_is_asked_for_once_for_all_who_wait(runner):
    assert [True] * 9 == await asyncio.gather(*(runner.answers() for _ in range(9)))
    assert ["ready"] == runner.calls


@pytest.mark.parametrize(
    ("error", "died"), [(ActorUnavailableError("away", None), False), (ActorDiedError(), True)]
)
async def test_one_that_cannot_be_called_gives_no_sign_of_life(runner, error, died):
    runner.breaks["ready"] = error

    assert not await runner.answers()
    assert died == runner.died


async def test_what_was_received_is_not_kept(runner):
    await runner.outcome(NAME)
    await runner.outcome(NAME)

    assert 1 >= len(await runner.actor.reports("host-1", [], 0))


async def test_a_host_that_drains_has_its_runners_forget_at_once(runner):
    # Else a runner that retires keeps the outcome for a minute: it may not be recorded yet.
    directory = Directory(None, "host-1", None)
    directory._ports["runner-1"] = runner
    runner.forget(NAME)

    await directory.tidy()

    assert ["take"] == runner.calls


def test_a_runner_that_nobody_hears_or_speaks_to_is_deaf_long_before_it_counts_as_gone():
    actor = RunnerActor(SITE, "runner-1")
    assert not actor._is_deaf()

    actor._beat_at -= 5
    assert actor._is_deaf()
    assert 4 == deaf_seconds(8)


async def test_a_deaf_runner_ends_also_where_it_cannot_say_so(monkeypatch):
    # What keeps it deaf keeps it from leaving the board: others count it as gone soon.
    class Away:
        async def leave(self, _):
            await asyncio.Event().wait()

    actor = RunnerActor(SITE, "runner-1")
    actor._runner = Runner("runner-1", Idle(), lambda: 0.0)
    actor._store = Away()
    actor._tasks = [asyncio.create_task(Away().leave("runner-1"))]
    actor._beat_at -= 5
    monkeypatch.setattr(runners, "LEAVE_SECONDS", 0.0)
    monkeypatch.setattr(os, "_exit", sys.exit)

    with pytest.raises(SystemExit):
        await actor._watch()


async def test_a_runner_says_at_once_that_it_has_work_and_when_it_has_none(runner):
    actor = runner.actor
    idle = await actor.ping(0, 1, 60.0)
    running = asyncio.create_task(actor.ping(0, 0, 60.0))
    await asyncio.wait([running], timeout=0)

    assert 0 == idle
    assert not running.done()
    running.cancel()


async def test_a_runner_without_calls_retires_at_once(runner):
    assert 0 == await runner.actor.retire(0, 60.0)
