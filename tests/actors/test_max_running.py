"""Blueprints of which only so many runs go on at a time."""

from datetime import timedelta

import pytest

from cueline.deciders.session import Status
from cueline.events.inbox import RunAdmitted, StopAsked
from cueline.events.session import SessionFailed
from cueline.events.start import NO_RUNNER, Schedule
from cueline.events.stream import sibling
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import Valve
from tests.actors.test_runs import CRAWL, Fleet, scene_of

RUNS = tuple(f"session-default/r{number}" for number in range(4))


async def queue(most=1, runs=4):
    """Return a scene with more runs than may go on; each waits in a tool until it is opened."""
    valve = Valve()
    scene, fleet = await scene_of(asks_for(("pay", {})), says("done"), act=valve, max_running=most)
    for number in range(runs):
        await scene.outside.start(f"r{number}", scene.agent, run=CRAWL)
    await fleet.world(scene, "r1")
    return scene, fleet, valve


async def admit(scene, fleet):
    await fleet.registry.admit()
    await scene.clock.settle()


async def claimed(scene):
    """Return the runs that a runner has claimed and that go on."""
    states = [await scene.outside.state(run) for run in RUNS]
    return [each.stream for each in states if each.run and each.run.runner and not each.finished]


async def statuses(scene):
    return [(await scene.outside.state(run)).status for run in RUNS]


async def stop(scene, run):
    await scene.outside.say(run, StopAsked())
    await scene.clock.settle()
    await scene.clock.advance(10)


@pytest.mark.parametrize("most", [1, 2])
async def test_so_many_runs_go_on_and_the_oldest_others_follow(most):
    scene, fleet, _ = await queue(most)
    await fleet.register("r1")
    seen = []

    for run in RUNS:
        await admit(scene, fleet)
        seen.append(await claimed(scene))
        await stop(scene, run)

    assert [list(RUNS[n : n + most]) for n in range(4)] == seen


async def test_a_run_that_waits_for_its_turn_does_not_fail():
    scene, fleet, valve = await queue()
    await fleet.register("r1")
    await admit(scene, fleet)
    waiting = await scene.outside.state(RUNS[1])
    assert ("queued", 1, None) == (
        waiting.waiting.cause.code,
        waiting.waiting.cause.of,
        waiting.waiting.deadline_at,
    )

    await fleet.until(4000)
    fleet.beat("r1")
    valve.opened.set()
    for _ in RUNS:
        await scene.clock.settle()
        await admit(scene, fleet)

    assert [Status.COMPLETED] * 4 == await statuses(scene)


async def test_without_a_runner_the_run_whose_turn_it_is_waits_as_long_as_any():
    scene, fleet, _ = await queue(runs=2)
    await fleet.register("r1")
    await admit(scene, fleet)
    await fleet.remove("r1")
    await fleet.until(10)
    assert Status.FAILED is (await statuses(scene))[0]

    await admit(scene, fleet)
    await fleet.until(311)

    failed = [f for f in await scene.outside.facts(RUNS[1]) if isinstance(f, SessionFailed)]
    assert [NO_RUNNER] == [each.message for each in failed]


async def test_a_run_is_admitted_once_also_by_two_dispatchers():
    scene, fleet, _ = await queue()
    await fleet.register("r1")
    await admit(scene, fleet)
    await admit(scene, await Fleet(scene, epoch=2).take())

    inbox = await scene.outside.facts(sibling(RUNS[0], "inbox"))

    assert 1 == sum(isinstance(fact, RunAdmitted) for fact in inbox)
    assert [RUNS[0]] == await claimed(scene)


async def test_a_runner_that_offers_the_blueprint_without_the_limit_takes_all():
    scene, fleet, _ = await queue()
    await fleet.register("r1")
    await admit(scene, fleet)

    free = scene.agent.model_copy(update={"max_running": None})
    await fleet.registry.record(
        [(await registration(fleet)).model_copy(update={"blueprints": (free,)})]
    )
    await scene.clock.settle()

    assert list(RUNS) == await claimed(scene)


async def registration(fleet):
    (runner,) = (await fleet.log.read()).runners.values()
    return runner.fact.model_copy(update={"runner": "other"})


async def test_a_run_that_starts_later_takes_no_place_until_then():
    scene, fleet, _ = await queue(runs=0)
    await fleet.register("r1")
    at = scene.clock.now() + timedelta(hours=1)
    await scene.outside.start("r0", scene.agent, run=CRAWL, schedule=Schedule(at=at))
    await scene.outside.start("r1", scene.agent, run=CRAWL)
    await admit(scene, fleet)
    assert [RUNS[1]] == await claimed(scene)

    fleet.beat("r1")
    await fleet.until(3601)
    fleet.beat("r1")
    await admit(scene, fleet)
    assert [RUNS[1]] == await claimed(scene)
    await stop(scene, RUNS[1])
    await admit(scene, fleet)

    assert [RUNS[0]] == await claimed(scene)
