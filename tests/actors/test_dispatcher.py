"""Who finds work, and whose work it is."""

import asyncio

import pytest

from cueline.actors.assignments import HostReport
from cueline.actors.dispatcher import TICK_SECONDS, Dispatcher
from cueline.actors.presence import presence_of
from cueline.deciders.session import Status
from cueline.errors import HostsFullError, LogUnavailableError
from cueline.events.inbox import MessageSent, ResumeAsked
from cueline.events.store import to_us
from cueline.testing.crash import CrashPoint
from cueline.testing.fakes import FoldedIndex, asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness, Valve


async def beating(scene, incarnation):
    """Return that a living process of this machine is *incarnation*."""
    presence = presence_of("host")
    scene.outside.board.present[incarnation] = type(presence)(
        **{name: getattr(presence, name) for name in presence.__slots__ if name != "incarnation"}
        | {"incarnation": incarnation, "beat_us": to_us(scene.clock.now())}
    )


# C34
async def test_a_new_message_is_passed_on_at_once():
    # 003-065
    scene = SessionHarness([says("one"), says("two")])
    await scene.begin(open=True)

    await scene.say(MessageSent(lane="note", text="Go on."))

    assert 2 == (await scene.count())["SessionIdle"]


async def test_a_session_with_a_living_owner_is_not_assigned():
    scene = SessionHarness([Valve()])
    owner = await scene.begin()
    await beating(scene, owner.name)

    other = await scene.world()

    assert [] == await other.host.active()
    assert 1 == (await scene.outside.store.head(SESSION)).epoch


async def test_a_silent_owner_counts_as_dead():
    # I3: a frozen host; the epoch fences it.
    scene = SessionHarness({(1, 1): Valve(), (1, 2): says("done")})
    owner = await scene.begin()
    await beating(scene, owner.name)
    await scene.clock.advance(11)

    await scene.world()

    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_command_does_not_resume_crashed_sessions_that_it_did_not_name():
    # DESIGN 5: 30 of them, and a one-line run.
    scene = SessionHarness([asks_for(("pay", {})), says("done")])
    crashed = [await scene.outside.start(f"c{n}", scene.agent) for n in range(30)]
    died = await scene.world(CrashPoint(40))
    await died.kill()
    before = [await scene.outside.store.head(stream) for stream in crashed]
    mine = await scene.outside.start("mine", scene.agent)

    await scene.world(scope={mine})
    await scene.outside.say(crashed[0], ResumeAsked())
    await scene.clock.settle()

    assert before == [await scene.outside.store.head(stream) for stream in crashed]
    assert Status.COMPLETED == (await scene.outside.state(mine)).status


async def test_a_named_session_is_resumed():
    # 000-016, C6
    scene = SessionHarness([asks_for(("read", {})), says("done")])
    crashed = [await scene.outside.start(f"c{n}", scene.agent) for n in range(30)]
    died = await scene.world(CrashPoint(40))
    await died.kill()

    for stream in crashed:
        world = await scene.world(scope={stream})
        await world.kill()

    assert {Status.COMPLETED} == {(await scene.outside.state(stream)).status for stream in crashed}


class Fleet:
    """Hosts that only remember what they were given."""

    def __init__(self, *names, places=100):
        self.given = {name: [] for name in names}
        self.looked = []
        self.ended = {}
        """By host, the sessions that it has ended since its last report."""
        self.places = places

    async def hosts(self):
        return {name: _Host(name, self) for name in self.given}


class _Host:
    def __init__(self, name, fleet):
        self._name = name
        self._fleet = fleet

    async def report(self, after):
        given, ended = self._fleet.given[self._name], self._fleet.ended.pop(self._name, {})
        self._fleet.given[self._name] = given = [each for each in given if each not in ended]
        active = given if after is None else None
        return HostReport(1, ended, len({*given}), self._fleet.places, active=active)

    async def hand_over(self, sessions):
        given = self._fleet.given[self._name]
        self._fleet.ended[self._name] = dict.fromkeys(given[:sessions], True)

    async def activate_all(self, streams):
        given = self._fleet.given[self._name]
        free = self._fleet.places - len(given)
        given.extend(streams[:free])
        return streams[free:]

    async def look_at_breakers(self):
        self._fleet.looked.append(self._name)


def dispatching(scene, fleet):
    outside = scene.outside
    return Dispatcher(
        store=outside.store,
        index=FoldedIndex(outside.journal),
        fleet=fleet,
        board=outside.board,
        clock=scene.clock,
        scope=None,
    )


async def test_a_new_follower_lets_all_hosts_check_their_breakers_once():
    scene, fleet = SessionHarness([]), Fleet("host-1", "host-2")

    following = asyncio.create_task(dispatching(scene, fleet).follow())
    await scene.clock.settle()

    assert ["host-1", "host-2"] == fleet.looked
    following.cancel()


async def test_a_session_is_given_to_its_own_host_or_to_one_that_may_take_it():
    scene = SessionHarness([])
    outside = scene.outside
    owners = {"ours": "host-1", "dead": "host-0", "theirs": "another", "new": None}
    streams = {name: await outside.start(name, scene.agent) for name in owners}
    for name, owner in owners.items():
        if owner is not None:
            await outside.store.acquire(streams[name], owner, 0)
    for alive in ("host-1", "another"):
        await beating(scene, alive)
    fleet = Fleet("host-1")

    await dispatching(scene, fleet).place(streams.values())

    assert {"host-1": [streams[name] for name in ("ours", "dead", "new")]} == fleet.given


async def test_who_is_refused_by_a_full_host_goes_to_another():
    scene, fleet = SessionHarness([]), Fleet("host-1", "host-2", places=3)
    streams = [await scene.outside.start(f"s{number}", scene.agent) for number in range(6)]

    await dispatching(scene, fleet).place(streams)

    assert sorted(streams) == sorted([*fleet.given["host-1"], *fleet.given["host-2"]])


async def test_where_all_hosts_are_full_the_others_wait_and_that_is_said():
    scene, fleet = SessionHarness([]), Fleet("host-1", "host-2", places=3)
    for number in range(8):
        await scene.outside.start(f"s{number}", scene.agent)

    with pytest.raises(HostsFullError, match="2 sessions have work, and no host"):
        await dispatching(scene, fleet).tick()

    assert [3, 3] == [len(given) for given in fleet.given.values()]


class Counting:
    """A log that counts which streams it was asked for the heads of."""

    def __init__(self, store):
        self._store = store
        self.asked = []

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def heads(self, streams):
        self.asked += streams
        return await self._store.heads(streams)


async def test_a_session_that_lives_here_costs_a_look_for_work_nothing():
    scene = SessionHarness([Valve()])
    world = await scene.begin()
    store = scene.outside.store = Counting(scene.outside.store)
    fleet = Fleet("host-1")
    fleet.given["host-1"] = await world.host.active()

    await dispatching(scene, fleet).tick()

    assert ([SESSION], []) == (fleet.given["host-1"], store.asked)


async def test_an_active_session_is_told_again_of_unread_messages():
    scene, fleet = SessionHarness([]), Fleet("host-1")
    unread = await scene.outside.start("s", scene.agent)
    fleet.given["host-1"] = [unread]

    await dispatching(scene, fleet).tick()

    assert [SESSION, SESSION] == fleet.given["host-1"]


class Deaf:
    """A log that cannot be followed at first."""

    def __init__(self, store):
        self._store = store
        self._deaf = True

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def follow(self, *asked):
        if self._deaf:
            self._deaf = False
            raise LogUnavailableError("log.db", "it is locked")
        async for event in self._store.follow(*asked):
            yield event


async def test_a_log_that_cannot_be_followed_is_tried_again_and_told_of():
    scene = SessionHarness([says("one"), says("two")])
    scene.outside.store = Deaf(scene.outside.store)
    world = await scene.begin(open=True)
    await scene.clock.advance(TICK_SECONDS)

    await scene.say(MessageSent(lane="note", text="Go on."))

    assert 2 == (await scene.count())["SessionIdle"]
    assert [] == await world.host.active()
