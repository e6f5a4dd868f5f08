"""Who waits for what a session answers reads no more than the end of its stream."""

import pytest

from cueline.actors.session_owner import LOOK_SECONDS
from cueline.actors.stream_notifier import StreamNotifier
from cueline.events.inbox import MessageSent
from cueline.events.journal import FactWrite, Journal
from cueline.events.session import ModelStarted
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
