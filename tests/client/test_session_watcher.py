"""Who waits for a session that somebody drives, or nobody (I14)."""

import asyncio

import pytest

from cueline.actors.presence import REMOVAL_SECONDS, SILENCE_SECONDS
from cueline.actors.session_owner import LOOK_SECONDS, set_aside_owner
from cueline.errors import (
    ClusterError,
    LogUnavailableError,
    SessionOwnedError,
    SessionUndrivenError,
    UnknownSessionError,
)
from cueline.events.codec import Codec
from cueline.events.inbox import MessageSent
from cueline.events.journal import Journal
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import FOLDER, SESSION, SessionHarness, Valve, in_a_call, living
from tests.client.waiting import CountingCodec, Home, Waiting, WaitingForAnswer, both


async def test_what_has_ended_is_told_whole_and_not_waited_for():
    scene = SessionHarness([says("done")])
    await scene.begin()

    waiting = Waiting(scene)
    await scene.clock.settle()

    await waiting.end()
    assert await scene.types() == waiting.told
    assert waiting.state.finished


async def test_what_comes_is_told_until_the_session_rests():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    world = await scene.begin()
    await living(scene, world.name)
    waiting = Waiting(scene)
    await scene.clock.advance(60)
    assert "ToolStarted" == waiting.told[-1]

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert "SessionCompleted" == waiting.told[-1]


async def test_of_many_who_wait_each_reads_its_own_session_alone():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
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
    waiting = kind(SessionHarness([]), stream="session-default/none")
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
    scene = SessionHarness([])
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
    scene = SessionHarness([asks_for(("build", {})), says("done")], workspace=FOLDER)
    scene.outside.runners.reach = False
    world = await scene.begin()
    await world.kill()
    waiting = kind(scene)
    await scene.clock.advance(REMOVAL_SECONDS - 1)
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
    scene = SessionHarness([says("done"), says("again")])
    world = await scene.begin(open=True)
    await world.kill()
    await scene.say(MessageSent(lane="note", text="And?"))
    waiting = Waiting(scene, Home(drives=True))
    await scene.clock.settle()
    assert not waiting.task.done()

    await scene.world()

    await waiting.end()
    assert 2 == waiting.told.count("ModelReplied")


async def stays():
    return True


async def asking():
    """Return a session that rests: its call waits for a person."""
    scene = SessionHarness([asks_for(("deploy", {})), says("done")])
    world = await scene.begin()
    await living(scene, world.name)
    return scene


async def test_a_session_that_rests_is_followed_while_a_person_stays_with_it():
    scene = await asking()
    waiting = Waiting(scene, stays=stays)
    await scene.clock.advance(10 * LOOK_SECONDS)
    assert "SessionWaiting" == waiting.told[-1]

    await scene.decide()
    await scene.clock.settle()

    assert "SessionCompleted" == waiting.told[-1]
    assert not waiting.task.done()
    waiting.task.cancel()


async def test_a_person_who_comes_back_does_not_go_on_with_a_wait_that_has_ended():
    leaves = []

    async def stays_but_once():
        return not leaves or leaves.pop()

    scene = await asking()
    waiting = Waiting(scene, stays=stays_but_once)
    await scene.clock.settle()

    leaves.append(False)
    await scene.clock.advance(LOOK_SECONDS)

    await waiting.end()
    assert await scene.types() == waiting.told


class UnreachableStore:
    """A log that cannot be asked how far its streams go, while `away`."""

    def __init__(self, store):
        self._store = store
        self.away = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def head(self, stream):
        if self.away:
            raise LogUnavailableError("log.db", "it does not answer")
        return await self._store.head(stream)


async def test_a_session_that_rests_is_followed_again_when_the_log_is_back():
    scene = await asking()
    store = UnreachableStore(scene.outside.store)
    waiting = Waiting(scene, journal=Journal(store, Codec(), scene.clock.now), stays=stays)
    await scene.clock.settle()
    store.away = True
    await scene.clock.advance(2 * LOOK_SECONDS)
    store.away = False

    await scene.decide()
    await scene.clock.settle()

    assert "SessionCompleted" == waiting.told[-1]
    waiting.task.cancel()


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
    [(Waiting, {"way": "until_it_rests"}), (Waiting, {"way": "follow"}), (WaitingForAnswer, {})],
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
    await scene.outside.store.acquire(SESSION, set_aside_owner(world.name), seen_epoch=1)
    waiting = kind(scene, Home(drives=True))

    await scene.clock.advance(14)

    with pytest.raises(SessionUndrivenError, match=f"{world.name} has set it aside"):
        await waiting.end()
