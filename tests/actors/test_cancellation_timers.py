"""Pauses, stops and signals reach a session that is at work, within their grace."""

from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    ModelFailed,
    ToolSkipped,
)
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness, Valve


async def test_a_pause_starts_nothing_new_and_lets_what_is_in_flight_finish():
    # 000-011
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    await scene.begin()

    await scene.say(PauseAsked())
    valve.opened.set()
    await scene.clock.settle()

    assert ["ToolReturned", "SessionWaiting"] == (await scene.types())[-2:]
    assert 1 == len(scene.model.asked)


async def test_a_signal_cancels_the_model_call_after_its_grace():
    # 000-011, DESIGN 6: a lost attempt, made again after a resume.
    valve = Valve()
    scene = SessionHarness({(1, 1): valve, (1, 2): says("done")})
    world = await scene.begin()

    await scene.say(PauseAsked(why="signal"))
    await scene.clock.advance(4.9)
    assert 0 == valve.cancelled
    await scene.clock.advance(0.2)

    assert 1 == valve.cancelled
    assert "cancelled" == (await scene.last(ModelFailed)).kind
    assert [] == await world.host.active()
    await scene.say(ResumeAsked())
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_pause_that_ends_within_its_grace_cancels_nothing():
    valve = Valve(says("done"))
    scene = SessionHarness([valve])
    await scene.begin()

    await scene.say(PauseAsked(why="signal"))
    await scene.clock.advance(3)
    await scene.say(ResumeAsked())
    await scene.clock.advance(60)
    valve.opened.set()
    await scene.clock.settle()

    assert 0 == valve.cancelled
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_stop_ends_a_model_call_at_once():
    # DESIGN 6
    valve = Valve()
    scene = SessionHarness([valve])
    await scene.begin()

    await scene.say(StopAsked())

    assert 1 == valve.cancelled
    assert "SessionStopped" == (await scene.types())[-1]


async def test_a_stop_gives_tools_their_grace_and_lists_what_it_killed():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    await scene.begin()

    await scene.say(StopAsked())
    await scene.clock.advance(4.9)
    assert 0 == valve.cancelled
    await scene.clock.advance(0.2)

    assert 1 == valve.cancelled
    assert ["ToolInDoubt", "SessionStopped"] == (await scene.types())[-2:]


async def test_a_tool_that_ends_within_the_grace_of_a_stop_is_not_in_doubt():
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=valve)
    await scene.begin()

    await scene.say(StopAsked())
    valve.opened.set()
    await scene.clock.settle()

    assert ["ToolReturned", "SessionStopped"] == (await scene.types())[-2:]


async def test_stopping_twice_is_stopping_once():
    scene = SessionHarness([says("done")])
    await scene.begin(open=True)

    await scene.say(StopAsked(), StopAsked())

    count = await scene.count()
    assert (1, 1) == (count["SessionStopped"], count["MessageRefused"])


async def test_a_steer_skips_what_was_not_started():
    # 003-061 to 003-064, 003-076, C49
    valve = Valve()
    scene = SessionHarness([asks_for(("pay", {}), ("pay", {"n": 2})), says("ok")], act=valve)
    await scene.begin()

    await scene.say(MessageSent(lane="steer", text="Stop that."))
    valve.opened.set()
    await scene.clock.settle()

    assert 1 == valve.began
    assert "Skipped due to queued user message." == (await scene.last(ToolSkipped)).reason
    assert b"Stop that." in b"".join(scene.model.asked[-1].messages)
