"""What a host knows of runners: which answer, and which are gone."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cueline.clock import SystemClock
from cueline.cluster import runner_directory
from cueline.cluster.runner_directory import Directory, RunnerInfo
from cueline.events.agent_parts import NO_DEMANDS, Demands
from cueline.stores.presence import MemoryPresence

SITE = SimpleNamespace(factory=SimpleNamespace(removal_seconds=600.0))
RUNNER = RunnerInfo("runner-1", "up/runner-1", "there", None, takes=True)


@pytest.fixture
def directory(monkeypatch):
    """Return a host's directory, with a runner on the node `there`."""

    async def nodes():
        return {"there"}

    monkeypatch.setattr(runner_directory, "living_nodes", nodes)
    monkeypatch.setattr(runner_directory, "NEWS_SECONDS", 0.0)
    found = Directory(SITE, "host-1", MemoryPresence(SystemClock()))
    found.know([RUNNER], {})
    return found


def test_a_word_that_comes_late_brings_no_runner_back(directory):
    # What is said to an async actor may be heard in another order.
    before = directory.choose(NO_DEMANDS)

    directory.know([], {"runner-1": "it has ended"})
    directory.know([RUNNER], {})

    assert ("runner-1", None) == (before, directory.choose(NO_DEMANDS))


async def test_a_runner_that_is_not_on_the_board_yet_is_not_gone(directory):
    assert await directory.gone("runner-1") is None


async def test_one_that_has_left_the_board_is_gone_when_ray_reports_its_exit(directory):
    # I14: its dispatcher may have lost sight of it before.
    directory.find("runner-1").died = True

    evidence = "Ray reports that the process of runner runner-1 has exited"
    assert evidence == await directory.gone("runner-1")


async def test_of_one_that_has_died_the_dispatchers_word_is_waited_for(directory, monkeypatch):
    # With it comes the name of the next runner.
    monkeypatch.setattr(runner_directory, "NEWS_SECONDS", 3600.0)
    directory.find("runner-1").died = True
    asking = asyncio.create_task(directory.gone("runner-1"))
    await asyncio.wait([asking], timeout=0)

    directory.know([], {"runner-1": "it has ended"})

    assert "it has ended" == await asyncio.wait_for(asking, 5)


async def test_one_that_nobody_heard_of_and_that_is_not_there_has_left(directory):
    assert "runner runner-9 has left" == await directory.gone("runner-9")


async def test_one_that_has_ended_answers_nobody(directory):
    directory.find("runner-1").died = True

    assert not await directory.answers("runner-1")


def test_a_call_goes_to_the_runner_that_meets_its_demands(directory):
    big = replace(RUNNER, incarnation="runner-2", labels={"gpu": "a100"}, resources={"gpus": 2})
    directory.know([RUNNER, big], {})
    wanted = Demands(labels={"gpu": "a100"}, resources={"gpus": 1})

    assert "runner-2" == directory.choose(wanted)
    assert None is directory.choose(wanted, full=["runner-2"])
    assert not directory.unmet(wanted)


def test_of_a_call_that_no_runner_matches_it_is_said_what_is_missing(directory):
    near = replace(RUNNER, incarnation="runner-2", labels={"gpu": "a100"})
    lost = replace(near, incarnation="runner-3", resources={"gpus": 2}, takes=False)
    directory.know([RUNNER, near, lost], {})
    wanted = Demands(labels={"gpu": "a100"}, resources={"gpus": 2})

    assert None is directory.choose(wanted)
    assert Demands(resources={"gpus": 2}) == directory.unmet(wanted)


def test_hosts_begin_with_different_runners():
    runners = [replace(RUNNER, incarnation=f"runner-{number}") for number in range(20)]
    hosts = [Directory(SITE, f"host-{n}", MemoryPresence(SystemClock())) for n in range(20)]
    for host in hosts:
        host.know(runners, {})

    chosen = [host.choose(NO_DEMANDS) for host in hosts]

    assert len(set(chosen)) > 5
    assert chosen == [host.choose(NO_DEMANDS) for host in hosts]
