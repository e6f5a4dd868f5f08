"""Kill the host of a run at every point there is, from its start to the end of its runner."""

import asyncio

from cueline.actors.fleet_log import FleetLog
from cueline.actors.runner_registry import RUNNER, RunnerRegistry
from cueline.deciders.heartbeat import HEARTBEAT
from cueline.deciders.session import Status
from cueline.events.fleet import RunnerRegistered, RunnerRemoved, WorkerGroup
from cueline.events.inbox import ChildEnded, RunnerGone
from cueline.events.session import RunClaimed
from cueline.events.start import ChildCall, Run
from cueline.events.stream import sibling
from cueline.testing.crash import CrashPoint, World
from cueline.testing.crash_point import CrashingRunner
from cueline.testing.fakes import FoldedIndex, asks_for, says
from tests.crash import story
from tests.crash.undisturbed import spread

PARENT, RUN = "session-default/parent", "session-default/run"
ASKS = [asks_for(("deploy", {"n": 9})), says("Noted.")]


async def begin():
    """Return an outside with a parent, and a run of it that no host has seen yet."""
    place, agent = story.outside(ASKS)
    registry = RunnerRegistry(
        place.journal,
        FleetLog(place.journal),
        FoldedIndex(place.journal),
        epoch=0,
        since=place.clock.now(),
        times=HEARTBEAT,
        offer=[agent],
    )
    group, now = WorkerGroup(kind="runner"), place.clock.now()
    fact = {"incarnation": "runner-1", "epoch": 0, "at": now}
    where = {"group": group, "machine": "m1", "node": "n1", "pid": 7}
    await registry.record([RunnerRegistered(runner=RUNNER, **where, **fact)])
    call = ChildCall(effect="1.0", mode="async_callback", parameters={"goal": "go"})
    await place.start("parent", agent, goal=None)
    run = Run(blueprint=agent.name)
    await place.start("run", agent, run=run, call=call, parent=PARENT, root=PARENT)
    return place, registry, RunnerRemoved(reason="killed", **fact)


async def drive(place, registry, removed, life=None):
    """Let a new host drive both; the runner is removed while the run waits for a person."""
    runner = CrashingRunner(story.runner_of(place), life or CrashPoint())
    world = World(place, life, runner=runner)
    await world.rest(within=60)
    if not world.life.dead:
        await registry.record([removed])
        await world.rest(within=60)
    await world.kill()
    return world


async def undisturbed():
    return (await drive(*await begin())).life.points


POINTS = asyncio.run(undisturbed())


def test_there_are_points_enough(figures):
    figures(f"{len(POINTS)} points to be killed at in a run whose runner is removed")

    assert len(POINTS) >= 15


# 001-003, 001-009, D18, D19, D20: the end of the run is told once, wherever its host dies.
# D21: a claim is an event of the run itself, so none is lost with its answer.
@spread("point", range(len(POINTS)))
async def test_a_run_ends_once_wherever_its_host_dies(point):
    place, registry, removed = await begin()
    assert (await drive(place, registry, removed, CrashPoint(point))).life.dead

    survivor = await drive(place, registry, removed)

    assert [] == survivor.troubles
    facts, inbox = await place.facts(RUN), await place.facts(sibling(RUN, "inbox"))
    assert "runner_disconnected" == (facts[-1].kind if facts[-1].type == "SessionFailed" else "")
    assert 1 == sum(isinstance(fact, RunClaimed) for fact in facts)
    assert 1 == sum(isinstance(fact, RunnerGone) for fact in inbox)
    told = [f for f in await place.facts(sibling(PARENT, "inbox")) if isinstance(f, ChildEnded)]
    assert ["runner_disconnected"] == [each.error_code for each in told]
    assert Status.WAITING is (await place.state(PARENT)).status
