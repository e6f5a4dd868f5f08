"""Kill hosts and dispatcher of a queue of runs at every point: never more than one goes on."""

import asyncio

from cueline.actors.fleet_log import FleetLog
from cueline.actors.runner_registry import RUNNER, RunnerRegistry
from cueline.deciders.heartbeat import HEARTBEAT
from cueline.deciders.session import Status
from cueline.events.fleet import RunnerRegistered, WorkerGroup
from cueline.events.inbox import RunAdmitted
from cueline.events.start import Run
from cueline.events.stream import sibling
from cueline.testing.crash import CrashPoint, World
from cueline.testing.crash_point import CrashingRunner
from cueline.testing.fakes import FoldedIndex, says
from tests.crash import story
from tests.crash.undisturbed import spread

RUNS = [f"session-default/r{number}" for number in range(3)]


def registry_of(place, journal, agent):
    """Return the registry of a dispatcher that offers *agent*."""
    return RunnerRegistry(
        journal,
        FleetLog(journal),
        FoldedIndex(place.journal),
        epoch=0,
        since=place.clock.now(),
        times=HEARTBEAT,
        offer=[agent],
    )


async def begin():
    place, agent = story.outside([says("done")])
    agent = agent.model_copy(update={"max_running": 1})
    group, now = WorkerGroup(kind="runner"), place.clock.now()
    fact = {"incarnation": "runner-1", "epoch": 0, "at": now, "group": group}
    where = {"machine": "m1", "node": "n1", "pid": 7}
    registry = registry_of(place, place.journal, agent)
    await registry.record([RunnerRegistered(runner=RUNNER, **where, **fact)])
    for run in RUNS:
        await place.start(run.partition("/")[2], agent, run=Run(blueprint=agent.name))
    return place, agent


async def drive(place, agent, life=None):
    """Let a new process drive the runs, and admit one after the other."""
    runner = CrashingRunner(story.runner_of(place), life or CrashPoint())
    world = World(place, life, runner=runner)
    registry = registry_of(place, place.journal_on(world.store), agent)
    for _ in range(len(RUNS) + 1):
        await world.rest(within=60)
        if not world.life.dead:
            admitting = asyncio.create_task(registry.admit())
            await place.clock.settle()
            admitting.cancel()  # it has ended, or died
    await world.kill()
    return world


async def undisturbed():
    return (await drive(*await begin())).life.points


POINTS = asyncio.run(undisturbed())


def test_there_are_points_enough(figures):
    figures(f"{len(POINTS)} points to be killed at in three runs, one at a time")

    assert len(POINTS) >= 20


# I7
@spread("point", range(len(POINTS)))
async def test_one_run_goes_on_at_a_time_wherever_a_process_dies(point):
    place, agent = await begin()
    assert (await drive(place, agent, CrashPoint(point))).life.dead

    survivor = await drive(place, agent)

    assert [] == survivor.troubles
    assert {Status.COMPLETED} == {(await place.state(run)).status for run in RUNS}
    told = [
        (recorded.stream, recorded.type)
        async for recorded in place.store.read_all()
        if recorded.type in ("RunClaimed", "SessionCompleted")
    ]
    assert told == [(run, what) for run in RUNS for what in ("RunClaimed", "SessionCompleted")]
    for run in RUNS:
        inbox = await place.facts(sibling(run, "inbox"))
        assert 1 == sum(isinstance(fact, RunAdmitted) for fact in inbox)
