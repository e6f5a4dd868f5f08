"""Who waits for what a session answers reads no more than the end of its stream."""

import pytest

from cueline.actors.session_owner import LOOK_SECONDS
from cueline.actors.stream_notifier import StreamNotifier
from cueline.events.codec import Codec
from cueline.events.inbox import MessageSent
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import ModelStarted
from cueline.testing.clock import take_turns
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness, Valve
from tests.client.waiting import CountingCodec, Home, WaitingForAnswer


# I1: what others read and fold is not read a second time.
@pytest.mark.parametrize(("near", "read"), [(True, 2), (False, 6)])
async def test_who_waits_for_the_answer_reads_no_more_than_the_end(near, read):
    valve, codec = Valve(says("done")), CountingCodec()
    scene = SessionHarness([*[asks_for(("read", {}))] * 30, valve])
    journal = Journal(scene.outside.store, codec, scene.clock.now)
    world = await scene.begin()
    home = Home(world.name, drives=True, host=world.host if near else None)
    waiting = WaitingForAnswer(scene, home, journal=journal)
    await scene.clock.settle()

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert ("done", read) == (waiting.word.result, codec.decoded)
    assert 100 < len(await scene.types())


async def test_what_has_no_answer_is_left_to_who_reads_the_past():
    scene = SessionHarness([asks_for(("deploy", {}))])
    await scene.begin()
    waiting = WaitingForAnswer(scene)
    await scene.clock.settle()

    await waiting.end()
    assert waiting.word is None


async def test_one_that_rests_is_not_waited_for_whatever_its_last_fact_is():
    scene = SessionHarness([asks_for(("deploy", {}))])
    await scene.begin()
    head = await scene.outside.store.head(SESSION)
    late = [[ModelStarted(effect="1.m", attempt=1)]]
    write = FactWrite(SESSION, late, expected_version=head.version, epoch=head.epoch)
    await scene.outside.journal.append([write], None)

    waiting = WaitingForAnswer(scene)
    await scene.clock.settle()

    await waiting.end()
    assert waiting.word is None


async def test_the_answer_is_not_said_while_a_message_is_not_read():
    scene = SessionHarness([says("one"), says("two")])
    world = await scene.begin(open=True)
    await scene.say(MessageSent(lane="note", text="And?"))
    answered = WaitingForAnswer(scene)
    await scene.clock.settle()
    await world.kill()
    await scene.say(MessageSent(lane="note", text="And then?"))

    asked = WaitingForAnswer(scene)
    await scene.clock.settle()

    await answered.end()
    await asked.end()
    assert ("two", None) == (answered.word.result, asked.word)


async def test_the_answer_is_not_the_one_before_a_message_that_is_read_meanwhile():
    scene = SessionHarness([says("one"), valve := Valve(says("two"))])
    await scene.begin(open=True)
    await scene.clock.settle()
    store, message = scene.outside.store, MessageSent(lane="note", text="And?")
    asked = WaitingForAnswer(scene, journal=Journal(Late(store, scene, message), Codec(), None))
    await scene.clock.settle()

    valve.opened.set()
    await scene.clock.settle()

    await asked.end()
    assert asked.word is None


class Late:
    """A store in which a session reads a message between two reads by somebody else."""

    def __init__(self, store, scene, message):
        self._store, self._scene, self._message = store, scene, message
        self._has_read = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    def read(self, *what, **how):
        self._has_read = True
        return self._store.read(*what, **how)

    async def head(self, stream):
        if self._has_read and (message := self._message) is not None:
            self._message = None
            await self._scene.outside.say(SESSION, message)
            while (await self._scene.types())[-1] != "ModelStarted":
                await take_turns()
        return await self._store.head(stream)


# I3: a frozen host knows less than was recorded, and does not let go.
@pytest.mark.parametrize("near", [False, True])
async def test_the_answer_is_what_another_host_recorded_after_a_takeover(near):
    scene = SessionHarness({(1, 1): Valve(), (1, 2): says("done")})
    frozen = await scene.begin()
    home = Home(frozen.name, drives=True, host=frozen.host if near else None)
    waiting = WaitingForAnswer(scene, home)
    await scene.clock.settle()
    frozen.life.dead = True
    await scene.clock.advance(11)

    await scene.world()
    await scene.clock.advance(LOOK_SECONDS)

    await waiting.end()
    assert "done" == waiting.word.result
    assert [SESSION] == await frozen.host.active()


async def test_nobody_follows_the_log_for_who_waits_beside_the_host():
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=(valve := Valve()))
    world = await scene.begin()
    notifier = StreamNotifier(None)
    waiting = WaitingForAnswer(scene, Home(world.name, host=world.host), notifier=notifier)
    await scene.clock.advance(60)

    valve.opened.set()
    await scene.clock.settle()

    await waiting.end()
    assert "done" == waiting.word.result
