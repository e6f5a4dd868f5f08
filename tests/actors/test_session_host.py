"""The process in which many sessions live: owners, neighbours, trouble."""

import asyncio

import pytest

from cueline.actors import session_host
from cueline.actors.session_host import ACTIVATIONS
from cueline.deciders.session import Status
from cueline.deciders.session.due import RecoverTool
from cueline.deciders.session.state import MAX_TAKEOVERS
from cueline.errors import (
    FencedError,
    ProviderUnavailableError,
    UnknownSessionError,
)
from cueline.events.codes import Cause
from cueline.events.inbox import ResumeAsked
from cueline.events.session import ModelFailed, SessionTakenOver, SessionWaiting
from cueline.testing.crash import CrashPoint, World
from cueline.testing.fakes import Runners, asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness, Valve


async def test_a_former_owner_writes_nothing_more_and_drops_the_session_silently():
    # I3: the store refuses the append of a host that thaws.
    valve = Valve(says("from the past"))
    scene = SessionHarness({(1, 1): valve, (1, 2): says("from the present")})
    frozen = await scene.begin()
    await scene.world()

    valve.opened.set()
    await scene.clock.settle()

    assert "from the present" in (await scene.outside.facts(SESSION))[-1].result
    assert [] == frozen.troubles
    assert [] == await frozen.host.active()


async def test_a_thawed_hosts_order_is_refused_by_the_runner():
    # I3, I5: the new owner has asked the same runner what became of the call.
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=Valve())
    frozen = await scene.begin()
    effect_executor = frozen.host._loops[SESSION]._effect_executor
    await scene.world(runner=frozen.runner)

    with pytest.raises(FencedError):
        await effect_executor.carry_out(RecoverTool("1.0", 1, f"{SESSION}/1.0", frozen.name))

    assert 1 == len(scene.executor.starts)


async def test_a_takeover_records_the_lost_attempt():
    # 000-006, C6
    scene = SessionHarness({(1, 1): Valve(), (1, 2): says("done")})
    frozen = await scene.begin()
    await frozen.kill()

    await scene.world()

    taken = await scene.last(SessionTakenOver)
    assert [("1.m", 1)] == [(lost.effect, lost.attempt) for lost in taken.lost_attempts]
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_session_that_kills_its_host_three_times_waits_for_an_operator():
    # DESIGN 5, Poison: and a resume lets it go on.
    scene = SessionHarness([asks_for(("pay", {})), says("done")])
    await scene.outside.start("s", scene.agent)
    for _ in range(4):
        world = await scene.world(CrashPoint(5))
        await world.kill()
    survivor = await scene.world()

    assert Cause(code="hosts_died", times=3) == (await scene.last(SessionWaiting)).cause
    assert [] == await survivor.host.active()
    await scene.say(ResumeAsked())
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_bug_in_one_session_is_reported_and_leaves_its_neighbours_alone():
    neighbour = Valve(says("done"))
    scene = SessionHarness({(1, 1): neighbour})
    world = await scene.begin()
    world.host._agent_cache.take = None
    await scene.outside.start("broken", scene.agent)
    await scene.clock.settle()
    neighbour.opened.set()
    await scene.clock.settle()

    ((stream, error),) = world.troubles
    assert ("session-default/broken", True) == (stream, "TypeError" in str(error))
    assert (0, "SessionCompleted") == (neighbour.cancelled, (await scene.types())[-1])


async def test_what_is_reported_of_a_bug_holds_no_secret():
    # I11: whoever is told prints it.
    scene = SessionHarness([asks_for(("read", {}))], secrets=["canary-0123456789"])

    class Buggy(Runners):
        def choose(self, *_):
            raise ValueError("it quotes canary-0123456789")

    scene.outside.runners = Buggy()
    await scene.begin()

    told = (await scene.last(SessionWaiting)).cause.message
    assert told.startswith("ValueError: it quotes [redacted] (")


async def test_nobody_owns_a_session_that_was_never_asked_for():
    scene = SessionHarness([])
    world = World(scene.outside)

    world.host.activate("session-default/ghost")
    await scene.clock.settle()

    assert UnknownSessionError is type(world.troubles[0][1])
    assert 0 == (await scene.outside.store.head("session-default/ghost")).epoch


async def test_few_sessions_are_brought_to_life_at_a_time():
    scene = SessionHarness([says("done")])
    waiting = set()

    class Gate(CrashPoint):
        async def reach(self, point):
            if point == "before acquiring session":
                waiting.add(object())
                await asyncio.get_running_loop().create_future()

    for number in range(ACTIVATIONS + 10):
        await scene.outside.start(f"s{number}", scene.agent)
    await scene.world(Gate())

    assert ACTIVATIONS == len(waiting)


async def test_a_full_host_takes_nothing_on_and_says_so(monkeypatch):
    monkeypatch.setattr(session_host, "ACTIVE", 2)
    scene = SessionHarness([Valve()])
    world = World(scene.outside)
    streams = [await scene.outside.start(f"s{number}", scene.agent) for number in range(4)]

    refused = await world.host.activate_all(streams)

    assert (streams[:2], streams[2:]) == (await world.host.active(), refused)


async def test_a_draining_host_lets_what_is_in_flight_finish_and_starts_nothing():
    """000-011, 000-068: what finishes is recorded; the session goes on in another host."""
    valve = Valve()
    scene = SessionHarness([asks_for(("read", {})), says("done")], act=valve)
    world = await scene.begin()

    draining = asyncio.create_task(world.host.drain(60))
    await scene.clock.settle()
    world.host.activate(await scene.outside.start("t", scene.agent))
    valve.opened.set()
    await draining

    assert "ToolReturned" == (await scene.types())[-2]
    assert "ModelRequested" == (await scene.types())[-1]
    assert [] == await scene.outside.types("session-default/t")
    await scene.world()
    assert Status.COMPLETED == (await scene.state()).status


async def test_a_model_call_that_takes_too_long_for_a_drain_is_cut_short_and_made_again():
    """000-011: within the grace, and recorded."""
    scene = SessionHarness({(1, 1): Valve(), (1, 2): says("done")})
    world = await scene.begin()

    await world.host.drain(0)

    assert "cancelled" == (await scene.last(ModelFailed)).kind
    await scene.world()
    assert Status.COMPLETED == (await scene.state()).status


async def test_a_drain_waits_for_nothing_that_is_not_in_flight():
    down = ProviderUnavailableError("overloaded", "come back")
    scene = SessionHarness({(1, 1): down}, retry={"base_seconds": 1, "jitter": 0})
    world = await scene.begin()
    assert [SESSION] == await world.host.active()

    draining = asyncio.create_task(world.host.drain(60))
    await scene.clock.settle()

    assert draining.done()


async def test_hosts_that_drain_are_no_deaths():
    """However often `cueline up` is taken down in a long call, no person is asked for it."""
    scene = SessionHarness({(1, attempt): Valve() for attempt in range(1, 9)})
    await scene.outside.start("s", scene.agent)
    for _ in range(MAX_TAKEOVERS + 2):
        world = await scene.world()
        await world.host.drain(0)

    assert Status.RUNNING == (await scene.state()).status
    assert MAX_TAKEOVERS < (await scene.count())["SessionTakenOver"]


async def test_a_host_that_drains_while_it_loads_takes_nothing_over():
    scene = SessionHarness({(1, 1): Valve()})
    await (await scene.begin()).host.close()
    world = World(scene.outside)
    world.host.activate(SESSION)

    await world.host.drain(0)

    assert "SessionTakenOver" not in await scene.types()


async def test_settled_waits_until_a_session_rests():
    scene = SessionHarness([says("done")])
    world = World(scene.outside)
    world.host.activate(await scene.outside.start("s", scene.agent))

    await world.host.settled(SESSION)

    assert Status.COMPLETED == (await scene.state()).status


async def test_closing_leaves_what_is_in_flight_to_the_next_owner():
    # 000-034, D1: resume really goes on.
    valve = Valve()
    scene = SessionHarness({(1, 1): valve, (1, 2): says("done")})
    world = await scene.begin()

    await world.host.close()
    await scene.clock.settle()
    events = len(await scene.types())
    await scene.world()

    assert 1 == valve.cancelled
    assert "SessionTakenOver" == (await scene.types())[events]
    assert "SessionCompleted" == (await scene.types())[-1]
