"""The time since the start: told of, and then nothing new starts (C24)."""

from cueline.deciders.session import Status, due, wake_at
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, RaiseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    LimitRaised,
    LimitWarned,
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolInDoubt,
    ToolReturned,
)
from cueline.testing.given import given
from tests.session_example import (
    agent,
    asking,
    broken,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)


# 003-029: on a timer, too, not only before a call.
def test_time_since_the_start_ends_on_a_timer_and_lets_what_is_in_flight_finish():
    spec = agent(max_wall_seconds=100)
    past = given().when(*up_to_reply("shout", spec=spec), running("1.0"))
    assert [later(80)] == [wake_at(past.state)]

    past.when(SessionContinued(by="deadline", at=later(80))).then(SessionContinued)
    assert later(90) == wake_at(past.state)
    past.when(SessionContinued(by="deadline", at=later(95))).then(SessionContinued)
    assert later(100) == wake_at(past.state)
    past.when(SessionContinued(by="deadline", at=later(100))).then(SessionContinued)
    assert wake_at(past.state) is None
    past.when(returned("1.0")).then(ToolReturned, SessionWaiting)

    assert past.state.hold.cause == Cause(code="limit_reached", limit="max_wall_seconds", of=100)
    assert "max_wall_seconds" == past.state.waiting.raisable


def test_time_since_the_start_is_told_of_before_the_next_call():
    spec = agent(max_wall_seconds=100)
    past = given().when(*up_to_reply("look", spec=spec), running("1.0", "look"))
    past.when(SessionContinued(by="deadline", at=later(92)), returned("1.0"))

    past.then(ToolReturned, LimitWarned, LimitWarned, ModelRequested)

    assert [0.8, 0.9] == [fact.share for fact in past.facts[1:3]]
    assert "You are approaching the time budget. Wrap up current work." == past.facts[2].note


# C24: a wait for a person is on the wall clock only.
def test_a_message_after_the_time_since_the_start_does_not_wake_an_idle_session():
    past = given().when(started(agent(max_wall_seconds=100), open=True), asking(), saying())
    assert wake_at(past.state) is None

    late = said(2).model_copy(update={"recorded_at": later(100)})
    past.when(late).then(MessageReceived, SessionWaiting)

    assert Status.WAITING is past.state.status


def test_a_takeover_after_the_time_since_the_start_starts_nothing():
    past = given().when(started(agent(max_wall_seconds=100)))

    past.when(SessionTakenOver(epoch=2, at=later(101))).then(SessionTakenOver, SessionWaiting)

    assert [] == due(past.state)


def at(seconds, version, message):
    return received(version, message).model_copy(update={"recorded_at": later(seconds)})


# C24: what a person decided stands; the time is up when it is to go on.
def test_a_pause_outlasts_the_time_since_the_start():
    past = given().when(started(agent(max_wall_seconds=100)), received(2, PauseAsked()))
    assert wake_at(past.state) is None

    past.when(at(150, 3, said(3).message))
    assert "asked" == past.state.hold.cause.code
    past.when(at(160, 4, ResumeAsked())).then(MessageReceived, SessionWaiting)
    assert past.state.hold.cause == Cause(code="limit_reached", limit="max_wall_seconds", of=100)


def test_a_session_that_stops_is_not_held_by_the_time_since_the_start():
    past = given().when(*up_to_reply("shout", spec=agent(max_wall_seconds=100)), running("1.0"))
    past.when(received(2, StopAsked()))
    assert wake_at(past.state) is None

    past.when(SessionTakenOver(epoch=2, at=later(150)))
    assert past.state.hold is None
    past.when(broken("1.0", "killed")).then(ToolInDoubt, SessionStopped)


def test_the_time_since_the_start_never_goes_back():
    past = given().when(*up_to_reply("look", spec=agent(max_wall_seconds=100)))
    past.when(running("1.0", "look"), SessionContinued(by="deadline", at=later(92)))

    past.when(SessionTakenOver(epoch=2, at=later(50)), broken("1.0", "tool_error"))

    assert [92, 92] == [fact.used for fact in past.facts if isinstance(fact, LimitWarned)]


def test_the_time_since_the_start_can_be_raised_while_a_call_waits_for_it():
    past = given().when(*up_to_reply("shout", spec=agent(max_wall_seconds=100)))
    past.when(SessionContinued(by="deadline", at=later(100))).then(SessionContinued, SessionWaiting)
    assert [] == due(past.state)

    late = at(120, 2, RaiseAsked(max_wall_seconds=200))
    past.when(late).then(MessageReceived, LimitRaised, SessionContinued)

    assert ["1.0"] == [effect.effect for effect in due(past.state)]
    assert later(160) == wake_at(past.state)
