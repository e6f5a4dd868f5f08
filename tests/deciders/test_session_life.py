"""A session is paused, resumed and stopped, whatever it is doing."""

import pytest

from cueline.deciders.session import TERMINAL, Status, due, session_of, wake_at
from cueline.deciders.session.due import Cancel
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionContinued,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.session_example import (
    NOW,
    agent,
    asking,
    broken,
    failing,
    question,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)

PAUSE, RESUME, STOP = PauseAsked(), ResumeAsked(), StopAsked(reason="enough")
RUNNER = SessionWaiting(kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=NOW)


def idle():
    return given().when(started(open=True), asking(), saying())


# C35
def test_there_is_one_vocabulary_of_statuses():
    at_rest, ended = ["created", "idle", "waiting"], ["completed", "failed", "stopped"]

    assert {*at_rest, "running", "stopping", *ended} == set(Status)
    assert set(ended) == TERMINAL


ERROR = SessionWaiting(
    kind="operator", cause=Cause(code="unexpected_error", message="no room on the disk")
)


def test_a_pause_is_a_pause_whatever_goes_wrong_meanwhile():
    past = given().when(*up_to_reply("look"), received(2, PAUSE), ERROR)

    assert "asked" == past.state.hold.cause.code


def test_a_session_that_stops_goes_on_stopping():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, STOP), ERROR)

    past.when(SessionContinued(by="deadline", at=NOW))

    assert Status.STOPPING is past.state.status


# 000-068
@pytest.mark.parametrize("why", ["asked", "signal"])
def test_a_pause_lets_what_is_in_flight_finish_and_starts_nothing(why):
    past = given().when(*up_to_reply("look", "put"), running("1.0", "look"))

    past.when(received(2, PauseAsked(why=why))).then(MessageReceived)
    past.when(running("1.1", "put")).then_nothing()
    past.when(returned("1.0")).then(
        ToolReturned, SessionWaiting(kind="operator", cause=Cause(code=why))
    )
    past.when(received(3, RESUME))
    assert ["1.1"] == [effect.effect for effect in due(past.state)]


def test_an_idle_session_can_be_paused_and_is_idle_again_after():
    past = idle().when(received(2, PAUSE)).then(MessageReceived, SessionWaiting)

    past.when(said(3)).then(MessageReceived)
    past.when(received(4, RESUME)).then(MessageReceived, ModelRequested)

    past = idle().when(received(2, PAUSE), received(3, RESUME))
    past.then(MessageReceived, SessionIdle(result="Well.", turns=1))


def test_a_pause_before_the_model_call_holds_it():
    past = given().when(started(), received(2, PAUSE)).then(MessageReceived, SessionWaiting)

    assert [] == due(past.state)
    past.when(asking()).then_nothing()


# 000-068: a cancelled model call is a lost attempt, and not a failure.
def test_a_model_call_that_a_pause_cancelled_is_made_again():
    past = given().when(started(), asking(), received(2, PAUSE), failing("cancelled"))

    past.then(ModelFailed, SessionWaiting)
    past.when(received(3, RESUME)).then(MessageReceived, ModelRequested)


def test_a_pause_outlasts_a_limit_that_a_message_would_lift():
    spec = agent(max_turns=1)
    past = given().when(*up_to_reply("look", spec=spec), running("1.0", "look"), returned("1.0"))

    past.when(received(2, PAUSE), said(3))

    assert "asked" == past.state.hold.cause.code


def test_a_resume_without_a_pause_changes_nothing():
    idle().when(received(2, RESUME)).then(MessageReceived)


def test_deadlines_pass_while_an_operator_is_waited_for():
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"), received(2, PAUSE))

    assert past.state.waiting.deadline_at == wake_at(past.state)
    expired = ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock")
    past.when(expired).then(ApprovalResolved, ToolSkipped, SessionWaiting)
    assert wake_at(past.state) is None


def test_a_stop_ends_what_is_at_rest_at_once():
    stopped = SessionStopped(by="user", reason="enough")

    idle().when(received(2, STOP)).then(MessageReceived, stopped)
    given().when(started(), received(2, STOP)).then(MessageReceived, stopped)
    given().when(started(), received(2, PAUSE), received(3, STOP)).then(MessageReceived, stopped)


def test_a_stop_cancels_what_is_in_flight_and_then_ends():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), received(2, STOP))

    assert Status.STOPPING is past.state.status
    assert Cancel("1.0", 1) in due(past.state)
    past.when(broken("1.0", "cancelled")).then(ToolFailed, SessionStopped)


@pytest.mark.parametrize("kind", ["cancelled", "killed", "lost"])
def test_an_undeclared_call_that_a_stop_killed_is_in_doubt_and_listed(kind):
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, STOP))

    past.when(broken("1.0", kind)).then(ToolInDoubt, SessionStopped)


def test_a_stop_waits_for_the_model_call_that_it_cancels():
    past = given().when(started(), asking(), received(2, STOP)).then(MessageReceived)

    assert [Cancel("1.m", 1)] == due(past.state)
    past.when(failing("cancelled")).then(ModelFailed, SessionStopped)


def test_a_stop_does_not_wait_for_a_runner_that_cannot_be_reached():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER)

    past.when(received(2, STOP)).then(MessageReceived, ToolInDoubt, SessionStopped)


def test_the_first_stop_counts_and_nothing_is_taken_after_it():
    past = given().when(started(), asking(), received(2, STOP))

    past.when(received(3, StopAsked(reason="really"))).then_rejected("session_stopping")
    past.when(said(4)).then_rejected("session_stopping")
    past.when(saying("shout")).then(ModelReplied, SessionStopped(by="user", reason="enough"))


def test_a_session_that_was_not_created_owes_nothing():
    assert ([], None) == (due(session_of("session-default/1")), wake_at(given().state))
