"""Whether the read models have to be asked for work, which brings them up to date."""

import asyncio

import pytest

from cueline.actors.dispatcher import Dispatcher
from cueline.deciders.session import Status
from cueline.events.inbox import DecisionGiven
from cueline.testing.crash import World
from cueline.testing.fakes import FoldedIndex, asks_for, says
from tests.actors.session_harness import SessionHarness, Valve


class Asked(FoldedIndex):
    """Counts how often it was asked for work."""

    times = 0

    def overdue(self, now):
        self.times += 1
        return super().overdue(now)


class Here:
    """One process with three sessions: `s` is driven, `t` has ended, `u` waits for a person."""

    async def begin(self):
        self.valve = Valve()
        self.valve.opened.set()
        script = [asks_for(("deploy", {})), says("done")]
        self.scene = scene = SessionHarness(script, act=self.valve, policy={"approval_seconds": 60})
        self.streams = [await scene.outside.start(name, scene.agent) for name in "stu"]
        self.world = await scene.world(scope=self.streams)
        await self.grant("t")
        self.valve.opened.clear()
        await self.grant("s")
        self.index = Asked(scene.outside.journal)
        self.dispatcher = Dispatcher(
            store=scene.outside.store,
            index=self.index,
            fleet=self.world,
            board=scene.outside.board,
            clock=scene.clock,
            scope=self.streams,
        )
        await self.dispatcher.tick()
        return self

    async def grant(self, name):
        stream = f"session-default/{name}"
        (call,) = (await self.scene.outside.state(stream)).open_calls
        said = {"approval": call.approval.id, "digest": call.approval.digest, "by": "ann"}
        await self.scene.outside.say(stream, DecisionGiven(verdict="grant", **said))
        await self.scene.clock.settle()

    async def times_asked(self):
        """Look for work, and return how often the index was asked for it."""
        before = self.index.times
        await self.dispatcher.tick()
        await self.scene.clock.settle()
        return self.index.times - before


@pytest.fixture
async def here():
    return await Here().begin()


async def test_nobody_asks_while_one_is_driven_and_the_others_rest(here):
    states = [(await here.scene.outside.state(stream)).status for stream in here.streams]

    assert [Status.RUNNING, Status.COMPLETED, Status.WAITING] == states
    assert [0, 0] == [await here.times_asked(), await here.times_asked()]


async def test_who_waits_for_a_moment_is_asked_for_when_it_has_come(here):
    await here.scene.clock.advance(61)

    assert 1 == await here.times_asked()
    assert "ApprovalResolved" in await here.scene.outside.types(here.streams[2])


async def test_a_new_follower_checks_once_for_missed_messages(here):
    following = asyncio.create_task(here.dispatcher.follow())
    await here.scene.clock.settle()

    assert [1, 0] == [await here.times_asked(), await here.times_asked()]
    following.cancel()


async def test_a_session_that_has_not_read_a_message_is_asked_for(here):
    here.world._following.cancel()
    await here.grant("u")

    assert 1 == await here.times_asked()
    assert "ToolStarted" == (await here.scene.outside.types(here.streams[2]))[-1]


async def test_a_session_that_another_process_took_up_and_left_is_asked_for(here):
    here.world._following.cancel()
    await here.grant("u")
    other = World(here.scene.outside)
    other.host.activate(here.streams[2])
    await here.scene.clock.settle()
    await other.kill()

    assert 1 == await here.times_asked()
    assert "SessionTakenOver" in await here.scene.outside.types(here.streams[2])
