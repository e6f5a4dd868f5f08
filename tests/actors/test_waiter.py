"""Who waits for a session that somebody drives, or nobody (I14)."""

import asyncio

import pytest

from cueline.actors.collaborator import RUNNER_SECONDS
from cueline.actors.followed import Followed
from cueline.actors.lookout import HEARD, Lookout
from cueline.actors.owner import LOOK_SECONDS, aside
from cueline.actors.presence import SILENCE_SECONDS
from cueline.actors.waiter import Waiter
from cueline.errors import (
    ClusterError,
    SessionOwnedError,
    SessionUndrivenError,
    UnknownSessionError,
)
from cueline.events.codec import Codec
from cueline.events.inbox import MessageSent
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import ModelStarted
from cueline.testing.fakes import asks_for, says
from tests.actors.scene import SESSION, Scene, Valve, in_a_call, living


class Home:
    """What a runtime knows, as a test says."""

    def __init__(self, name=None, *, drives=False, trouble=None, host=None):
        self._host = host
        self._name = name
        self._drives = drives
        self._trouble = trouble

    def trouble(self, _):
        return self._trouble

    def takes_up(self, _):
        return self._drives

    def settled(self, stream):
        return self._host.settled(stream) if self._host and self._host.drives(stream) else None

    def has(self, incarnation):
        return self._name is not None and incarnation == self._name


class Waiting:
    """Somebody who waits for the session of a scene."""

    def __init__(
        self, scene, home=None, stream=SESSION, journal=None, *, lookout=None, way="until_it_rests"
    ):
        self.told = []
        self._way = way
        outside = scene.outside
        journal = journal or outside.journal
        followed, lookout = Followed(stream, journal), lookout or Lookout(journal.store)
        waiter = Waiter(followed, lookout, outside.board, scene.clock, home or Home())
        self.task = asyncio.create_task(self._wait(waiter))

    async def _wait(self, waiter):
        async for version, fact, state in getattr(waiter, self._way)():
            assert version == len(self.told) + 1
            self.told.append(fact.type)
            self.state = state

    async def end(self):
        return await asyncio.wait_for(self.task, 0)


class ForTheLastWord(Waiting):
    """Somebody who waits for what it says last, as `Session.result` does."""

    async def _wait(self, waiter):
        self.word = await waiter.last_word()


both = pytest.mark.parametrize("kind", [Waiting, ForTheLastWord])


async def test_what_has_ended_is_told_whole_and_not_waited_for():
    scene = Scene([says("done")])
    await scene.begin()

    waiting = Waiting(scene)
    await scene.clock.settle()

    await waiting.end()
    assert await scene.types() == waiting.told
    assert waiting.state.finished


async def test_what_comes_is_told_until_the_session_rests():
    valve = Valve()
    scene = Scene([asks_for(("pay", {})), says("done")], act=valve)
    world = await scene.begin()
    await living(scene, world.name)
    waiting = Waiting(scene)
    await scene.clock.advance(60)
    assert "ToolStarted" == waiting.told[-1]

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert "SessionCompleted" == waiting.told[-1]


class CountingCodec(Codec):
    """Counts what it decodes."""

    decoded = 0

    def decode(self, *args):
        fact = super().decode(*args)
        self.decoded += 1
        return fact


async def test_of_many_who_wait_each_reads_its_own_session_alone():
    valve = Valve()
    scene = Scene([asks_for(("pay", {})), says("done")], act=valve)
    outside, codec = scene.outside, CountingCodec()
    streams = [await outside.start(f"s{n}", scene.agent) for n in range(10)]
    world = await scene.world()
    await living(scene, world.name)
    journal = Journal(outside.store, codec, scene.clock.now)
    waiting = [Waiting(scene, stream=stream, journal=journal) for stream in streams]
    await scene.clock.settle()

    valve.opened.set()
    await scene.clock.settle()

    for each in waiting:
        await each.end()
    assert sum(len(each.told) for each in waiting) == codec.decoded


@both
async def test_a_session_that_there_is_not_is_not_waited_for(kind):
    waiting = kind(Scene([]), stream="session-default/none")
    await asyncio.wait([waiting.task])

    with pytest.raises(UnknownSessionError):
        await waiting.end()


@both
async def test_nobody_drives_a_session_whose_driver_is_not_seen_for_so_long(kind):
    scene, world = await in_a_call()
    waiting = kind(scene)
    await scene.clock.advance(SILENCE_SECONDS - 1)
    assert not waiting.task.done()

    await scene.clock.advance(4)

    with pytest.raises(SessionUndrivenError, match=f"{world.name} has left it"):
        await waiting.end()


@both
async def test_nobody_drives_a_session_that_was_never_taken_up(kind):
    scene = Scene([])
    await scene.outside.start("s", scene.agent)
    waiting = kind(scene)

    await scene.clock.advance(SILENCE_SECONDS + 4)

    with pytest.raises(SessionUndrivenError, match="nobody has taken it up yet"):
        await waiting.end()


@both
async def test_one_that_is_taken_up_for_certain_is_waited_for(kind):
    scene, _ = await in_a_call()
    waiting = kind(scene, Home(drives=True))

    await scene.clock.advance(600)

    assert not waiting.task.done()
    waiting.task.cancel()


@both
async def test_nobody_has_to_drive_what_waits_for_a_moment_to_come(kind):
    scene = Scene([asks_for(("build", {})), says("done")])
    scene.outside.runners.reach = False
    world = await scene.begin()
    await world.kill()
    waiting = kind(scene)
    await scene.clock.advance(RUNNER_SECONDS - 1)
    assert not waiting.task.done()

    await scene.clock.advance(SILENCE_SECONDS + 5)

    with pytest.raises(SessionUndrivenError, match="has left it"):
        await waiting.end()


@both
async def test_a_driver_that_comes_in_time_begins_the_count_anew(kind):
    scene, world = await in_a_call()
    waiting = kind(scene)
    await scene.clock.advance(SILENCE_SECONDS - 2)
    await living(scene, world.name)
    await scene.clock.advance(4)
    await scene.outside.board.leave(world.name)

    await scene.clock.advance(SILENCE_SECONDS - 2)

    assert not waiting.task.done()
    waiting.task.cancel()


async def test_a_message_that_is_not_read_is_waited_for():
    scene = Scene([says("done"), says("again")])
    world = await scene.begin(open=True)
    await world.kill()
    await scene.say(MessageSent(lane="note", text="And?"))
    waiting = Waiting(scene, Home(drives=True))
    await scene.clock.settle()
    assert not waiting.task.done()

    await scene.world()

    await waiting.end()
    assert 2 == waiting.told.count("ModelReplied")


@both
async def test_trouble_that_lasts_is_raised(kind):
    scene, _ = await in_a_call()
    waiting = kind(scene, Home(drives=True, trouble=ClusterError("Ray", "it has ended")))
    await scene.clock.settle()

    with pytest.raises(ClusterError, match="it has ended"):
        await waiting.end()


# I5: whoever has the session now cannot ask after the call.
@pytest.mark.parametrize(
    ("kind", "more"),
    [(Waiting, {"way": "until_it_rests"}), (Waiting, {"way": "for_ever"}), (ForTheLastWord, {})],
)
async def test_who_was_taken_over_from_in_a_call_is_told_by_whom(kind, more):
    scene, world = await in_a_call()
    other = await living(scene, "other")
    waiting = kind(scene, Home(world.name, drives=True), **more)
    await scene.clock.settle()
    await scene.outside.store.acquire(SESSION, "other", seen_epoch=1)
    await scene.clock.advance(LOOK_SECONDS)

    with pytest.raises(SessionOwnedError, match=f"driven by process {other.pid} on "):
        await waiting.end()


@both
async def test_who_drives_its_call_is_waited_for_and_taken_over_by_nobody(kind):
    scene, world = await in_a_call()
    await living(scene, world.name)
    waiting = kind(scene, Home(world.name, drives=True))
    await scene.clock.advance(60)

    assert not waiting.task.done()
    waiting.task.cancel()


@both
async def test_who_has_nothing_of_it_here_waits_for_the_other(kind):
    scene, _ = await in_a_call()
    await living(scene, "other")
    await scene.outside.store.acquire(SESSION, "other", seen_epoch=1)
    waiting = kind(scene, Home("nobody"))
    await scene.clock.advance(60)

    assert not waiting.task.done()
    waiting.task.cancel()


# I14: neither of them drives it, though both live.
@both
async def test_what_was_set_aside_is_not_waited_for_whoever_takes_up_all_else(kind):
    scene, world = await in_a_call()
    await living(scene, world.name)
    await scene.outside.store.acquire(SESSION, aside(world.name), seen_epoch=1)
    waiting = kind(scene, Home(drives=True))

    await scene.clock.advance(14)

    with pytest.raises(SessionUndrivenError, match=f"{world.name} has set it aside"):
        await waiting.end()


# I1: what others read and fold is not read a second time.
@pytest.mark.parametrize(("near", "read"), [(True, 2), (False, 6)])
async def test_who_waits_for_the_last_word_reads_no_more_than_the_end(near, read):
    valve, codec = Valve(says("done")), CountingCodec()
    scene = Scene([*[asks_for(("read", {}))] * 30, valve])
    journal = Journal(scene.outside.store, codec, scene.clock.now)
    world = await scene.begin()
    home = Home(world.name, drives=True, host=world.host if near else None)
    waiting = ForTheLastWord(scene, home, journal=journal)
    await scene.clock.settle()

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert ("done", read) == (waiting.word.result, codec.decoded)
    assert 100 < len(await scene.types())


class CountingStore:
    """Counts how often somebody reads a stream."""

    def __init__(self, store):
        self._store = store
        self.reads = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def read(self, *args):
        self.reads += 1
        return self._store.read(*args)


# I1: what the lookout has read for all is not read a second time by each.
async def test_what_comes_is_read_once_for_all_who_wait_for_it():
    valve = Valve(asks_for(("read", {})))
    scene = Scene([valve, *[asks_for(("read", {}))] * 30, says("done")])
    world = await scene.begin()
    await living(scene, world.name)
    store = CountingStore(scene.outside.store)
    waiting = Waiting(scene, journal=Journal(store, Codec(), scene.clock.now))
    await scene.clock.settle()
    before = len(waiting.told)

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert 100 < len(waiting.told) - before
    assert 3 == store.reads  # what was there, what came until it looked out, and the first of it


class SlowWaiting(Waiting):
    """Somebody who waits, and takes no more facts while `ready` is not set."""

    async def _wait(self, waiter):
        self.ready = asyncio.Event()
        self.ready.set()
        async for version, fact, _ in waiter.until_it_rests():
            assert version == len(self.told) + 1
            self.told.append(fact.type)
            await self.ready.wait()


async def test_who_is_slow_is_told_everything_once_and_little_is_held_for_them():
    valve = Valve(asks_for(("read", {})))
    scene = Scene([valve, *[asks_for(("read", {}))] * HEARD, says("done")])
    world = await scene.begin()
    await living(scene, world.name)
    waiting = SlowWaiting(scene)
    await scene.clock.settle()
    waiting.ready.clear()

    valve.opened.set()
    await scene.clock.settle()
    assert len(waiting.told) + HEARD < len(await scene.types())
    waiting.ready.set()
    await scene.clock.settle()

    await waiting.end()
    assert await scene.types() == waiting.told


async def test_what_has_no_last_word_is_left_to_who_reads_the_past():
    scene = Scene([asks_for(("deploy", {}))])
    await scene.begin()
    waiting = ForTheLastWord(scene)
    await scene.clock.settle()

    await waiting.end()
    assert waiting.word is None


async def test_one_that_rests_is_not_waited_for_whatever_its_last_fact_is():
    scene = Scene([asks_for(("deploy", {}))])
    await scene.begin()
    head = await scene.outside.store.head(SESSION)
    late = [[ModelStarted(effect="1.m", attempt=1)]]
    write = FactWrite(SESSION, late, expected_version=head.version, epoch=head.epoch)
    await scene.outside.journal.append([write], None)

    waiting = ForTheLastWord(scene)
    await scene.clock.settle()

    await waiting.end()
    assert waiting.word is None


async def test_the_last_word_is_not_said_while_a_message_is_not_read():
    scene = Scene([says("one"), says("two")])
    world = await scene.begin(open=True)
    await scene.say(MessageSent(lane="note", text="And?"))
    answered = ForTheLastWord(scene)
    await scene.clock.settle()
    await world.kill()
    await scene.say(MessageSent(lane="note", text="And then?"))

    asked = ForTheLastWord(scene)
    await scene.clock.settle()

    await answered.end()
    await asked.end()
    assert ("two", None) == (answered.word.result, asked.word)


# I3: a frozen host knows less than was recorded, and does not let go.
@pytest.mark.parametrize("near", [False, True])
async def test_the_last_word_is_what_another_host_recorded_after_a_takeover(near):
    scene = Scene({(1, 1): Valve(), (1, 2): says("done")})
    frozen = await scene.begin()
    home = Home(frozen.name, drives=True, host=frozen.host if near else None)
    waiting = ForTheLastWord(scene, home)
    await scene.clock.settle()
    frozen.life.dead = True
    await scene.clock.advance(11)

    await scene.world()
    await scene.clock.advance(LOOK_SECONDS)

    await waiting.end()
    assert "done" == waiting.word.result
    assert [SESSION] == await frozen.host.active()


async def test_nobody_follows_the_log_for_who_waits_beside_the_host():
    scene = Scene([asks_for(("pay", {})), says("done")], act=(valve := Valve()))
    world = await scene.begin()
    lookout = Lookout(None)
    waiting = ForTheLastWord(scene, Home(world.name, host=world.host), lookout=lookout)
    await scene.clock.advance(60)

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert "done" == waiting.word.result
