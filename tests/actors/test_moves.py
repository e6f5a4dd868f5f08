"""Sessions move between hosts: when one joins, drains, is full or has many more."""

import asyncio

import pytest

from cueline.actors import session_host
from cueline.actors.dispatcher import Dispatcher
from cueline.actors.runner_slots import Slots
from cueline.deciders.session import Status
from cueline.deciders.session.state import MAX_TAKEOVERS
from cueline.events.agent_parts import NO_DEMANDS, Demands
from cueline.events.inbox import MessageSent, StopAsked
from cueline.testing.crash import World
from cueline.testing.fakes import FoldedIndex, agent_spec, asks_for, says
from tests.actors.session_harness import TOOLS, SessionHarness, Valve

CALLS = [asks_for(("pay", {})), asks_for(("read", {})), says("done")]


class Hosts:
    """Hosts in this process, with one dispatcher of them all."""

    def __init__(self, *hosts, replies=CALLS, slots=100):
        self.slots = Slots(workers=slots)
        self.tool = Valve()
        self.scene = SessionHarness(replies, act=self.tool)
        self.outside, self.clock = self.scene.outside, self.scene.clock
        self.worlds = {}
        for name in hosts:
            self.join(name)
        self.dispatcher = Dispatcher(
            store=self.outside.store,
            index=FoldedIndex(self.outside.journal),
            fleet=self,
            board=self.outside.board,
            clock=self.clock,
        )

    def join(self, name):
        self.worlds[name] = World(self.outside, name=name, scope=(), slots=self.slots)

    async def hosts(self):
        return {name: world.host for name, world in self.worlds.items()}

    async def start(self, count):
        names = [f"s{number:03}" for number in range(count)]
        self.streams = [await self.outside.start(name, self.scene.agent) for name in names]
        await self.tick()

    async def tick(self, times=1):
        for _ in range(times):
            looking = asyncio.create_task(self.dispatcher.tick())
            await self.clock.settle()
            await looking
            await self.clock.settle()

    async def loads(self):
        return {name: len(await world.host.active()) for name, world in self.worlds.items()}

    async def statuses(self):
        return {(await self.outside.state(stream)).status for stream in self.streams}

    def calls(self, tool):
        """Return the keys of the calls of *tool* that began."""
        return [start.key for start in self.scene.executor.starts if start.tool == tool]


async def test_sessions_go_to_the_least_loaded_host():
    here = Hosts("a", "b", "c")

    await here.start(30)

    assert {"a": 10, "b": 10, "c": 10} == await here.loads()


async def test_sessions_move_to_a_host_that_joins_between_their_effects():
    # I5: nothing is lost, and no undeclared call is repeated.
    here = Hosts("a")
    await here.start(30)
    here.join("b")

    await here.tick()
    assert {"a": 30, "b": 0} == await here.loads()
    here.tool.opened.set()
    await here.clock.settle()
    await here.tick()

    assert {"a": 0, "b": 0} == await here.loads()
    assert {Status.COMPLETED} == await here.statuses()
    assert 30 == len(here.calls("pay")) == len({*here.calls("pay")})
    owners = await here.outside.store.heads(here.streams)
    assert {"a", "b"} == {head.owner for head in owners.values()}


async def test_those_without_a_running_effect_move_first():
    here = Hosts("a", slots=8)
    await here.start(20)
    host = here.worlds["a"].host
    called = {stream for stream in here.streams if host._loops[stream].is_busy}

    await host.hand_over(5)
    await here.clock.settle()

    left = {*here.streams} - {*await host.active()}
    assert (8, 5, 0) == (len(called), len(left), len(left & called))


async def test_a_session_that_moves_again_and_again_is_not_taken_for_one_that_kills_its_hosts():
    # 000-068: while a fleet starts again, its sessions move with each host that joins.
    here = Hosts("a", slots=1)
    await here.start(2)
    host = here.worlds["a"].host
    (waits,) = [stream for stream in here.streams if not host._loops[stream].is_busy]

    for _ in range(MAX_TAKEOVERS):
        await host.hand_over(1)
        await here.clock.settle()
        await here.tick()
    here.tool.opened.set()
    await here.clock.settle()

    state = await here.outside.state(waits)
    assert {Status.COMPLETED} == await here.statuses()
    assert 2 * MAX_TAKEOVERS + 1 == (await here.outside.store.head(waits)).epoch, state


async def test_balanced_hosts_move_nothing():
    here = Hosts("a", "b")
    await here.start(20)
    before = [await world.host.active() for world in here.worlds.values()]

    await here.tick(5)

    assert before == [await world.host.active() for world in here.worlds.values()]
    assert not any(world.host._leaving for world in here.worlds.values())


async def test_a_host_that_drains_gives_its_sessions_to_others_one_by_one():
    # 000-068, NEXT: before the last of them is ready to go.
    here = Hosts("a", "b")
    await here.start(2)
    drives = here.worlds["a"].host._loops
    (mine,) = drives

    draining = asyncio.create_task(here.worlds["a"].host.drain(60))
    await here.clock.settle()
    await here.tick()
    assert {"a": 1, "b": 1} == await here.loads()
    here.tool.opened.set()
    await draining
    await here.tick()

    assert {Status.COMPLETED} == await here.statuses()
    assert "b" == (await here.outside.store.head(mine)).owner
    assert 2 == len(here.calls("pay"))


async def test_a_host_that_drains_too_long_leaves_its_sessions_to_others():
    here = Hosts("a", "b")
    await here.start(2)
    a = here.worlds["a"].host
    (mine,) = a._loops

    await a.drain(0)

    assert {mine: True} == dict((await a.report(1)).ended)
    assert not (await a.report(2)).places


async def test_a_session_that_rests_or_has_another_owner_has_no_work_left():
    here = Hosts("a", replies=[says("done")])
    await here.outside.start("s", here.scene.agent)
    host, store = here.worlds["a"].host, here.outside.store
    stream = "session-default/s"
    await host.activate_all([stream])
    await here.clock.settle()
    rested = await host.report(0)
    await here.outside.say(stream, MessageSent(lane="note", text="Too late."))
    await host.activate_all([stream])
    await store.acquire(stream, "another", (await store.head(stream)).epoch)
    await here.clock.settle()

    assert {stream: False} == rested.ended == (await host.report(1)).ended


async def test_a_session_that_is_to_move_still_hears_its_messages():
    here = Hosts("a")
    await here.start(20)
    host = here.worlds["a"].host
    await host.hand_over(20)

    await here.outside.say(here.streams[0], StopAsked())
    await here.dispatcher.place(here.streams[:1])
    await here.clock.advance(60)

    assert Status.STOPPED == (await here.outside.state(here.streams[0])).status


async def test_the_sessions_of_a_host_that_died_go_to_the_others():
    here = Hosts("a", "b")
    await here.start(20)
    died = here.worlds.pop("a")
    mine = await died.host.active()
    await died.kill()
    here.tool.opened.set()
    await here.clock.settle()

    await here.tick()

    heads = await here.outside.store.heads(mine)
    assert (10, {"b"}) == (len(mine), {head.owner for head in heads.values()})


async def test_a_full_host_keeps_what_it_has_and_others_get_the_rest(monkeypatch):
    monkeypatch.setattr(session_host, "ACTIVE", 5)
    here = Hosts("a", "b")

    await here.start(8)

    assert {"a": 4, "b": 4} == await here.loads()


async def test_a_session_that_rests_is_woken_on_the_host_with_the_fewest():
    here = Hosts("a", replies={(1, 1): says("one"), (2, 1): Valve(says("two"))})
    streams = [await here.outside.start(name, here.scene.agent, open=True) for name in "stu"]
    await here.tick(2)
    here.join("b")
    note = MessageSent(lane="note", text="Go on.")

    for stream in streams:
        await here.outside.say(stream, note)
        await here.clock.settle()
        await here.dispatcher.place([stream])
        await here.clock.settle()

    assert {"a": 2, "b": 1} == await here.loads()


@pytest.mark.parametrize("changes", [0, 3])
async def test_a_tick_asks_the_log_about_what_has_changed_only(changes):
    here = Hosts("a", "b")
    await here.start(40)
    asked = []
    store = here.dispatcher._store

    class Counting:
        def __getattr__(self, name):
            return getattr(store, name)

        async def heads(self, streams):
            asked.extend(streams)
            return await store.heads(streams)

    here.dispatcher._store = Counting()
    new = [await here.outside.start(f"t{n}", here.scene.agent) for n in range(changes)]

    await here.tick()

    assert new == asked


async def test_calls_that_wait_for_a_slot_or_for_a_runner_are_counted_by_what_they_demand():
    here = Hosts("a", "b", slots=8)
    here.scene.agent = agent_spec(*TOOLS, demands={"machine": "m9"})
    here.outside.runners.ports.clear()
    await here.start(3)
    here.outside.runners.ports["r1"] = here.worlds["a"].runner
    here.scene.agent = agent_spec(*TOOLS)
    for number in range(30):
        await here.outside.start(f"t{number}", here.scene.agent)
    await here.tick(3)

    unmet = await here.dispatcher.unmet()

    assert (3, 14) == (calls(unmet, Demands(machine="m9")), calls(unmet, NO_DEMANDS))


def calls(unmet, demands):
    """Return how many calls wait with these demands."""
    return sum(each.calls for each in unmet if each.demands == demands)
