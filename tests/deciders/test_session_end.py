"""The end of a session is final (I6, D15)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked, StartAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    MessageRefused,
    ModelReplied,
    ModelRequested,
    OutcomeCameLate,
    PeopleNotified,
    SessionCompleted,
    SessionFailed,
    SessionTakenOver,
    SessionWaiting,
)
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    asking,
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

RUNNER = SessionWaiting(kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=NOW)
TAKEN = SessionTakenOver(epoch=2, at=NOW)


def test_a_message_after_the_end_is_refused_and_changes_nothing():
    past = given().when(started(), asking(), saying("look"), received(2, StopAsked()))

    past.when(said(3)).then_rejected("session_ended")
    past.when(received(4, ResumeAsked())).then(MessageRefused)
    assert (Status.STOPPED, 4) == (past.state.status, past.state.inbox_read)


def test_a_message_at_the_moment_of_completion_is_refused_or_answered():
    past = given().when(started(), asking(), said(2), saying()).then(ModelReplied, ModelRequested)
    other = given().when(started(), asking(), saying(), said(2))

    past.when(asking(2), saying(turn=2)).then(ModelReplied, SessionCompleted)
    other.then_rejected("session_ended")


def test_an_outcome_after_the_end_changes_nothing():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, PauseAsked()), RUNNER)
    past.when(received(3, StopAsked()))
    ended = past.state

    past.when(returned("1.0")).then(OutcomeCameLate)

    assert (ended, [], None) == (past.state, due(past.state), wake_at(past.state))


def test_an_outcome_after_a_failure_changes_nothing():
    past = given().when(*up_to_reply("shout"), running("1.0"))
    past.when(SessionFailed(kind="import", message="no tool"))

    past.when(returned("1.0")).then(OutcomeCameLate)

    assert Status.FAILED is past.state.status


LATE = [
    RUNNER,
    SessionWaiting(kind="operator", cause=Cause(code="unexpected_error", message="no")),
    SessionFailed(kind="import", message="no tool"),
    PeopleNotified(effect="1.0", approval="1.1.0.1", hook=0, problem="", at=NOW),
]


@pytest.mark.parametrize("fact", LATE, ids=lambda fact: getattr(fact, "kind", fact.type))
def test_what_is_heard_after_the_end_is_not_recorded(fact):
    given().when(started(), asking(), saying(), fact).then_nothing()


def test_a_question_is_not_answered_after_the_end():
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1"))
    past.when(SessionFailed(kind="import", message="no tool"))

    expired = ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock")
    past.when(expired).then_nothing()


# I13
def test_a_resume_does_not_retry_what_a_cut_kept_from_ending():
    past = given(*given().when(started()).facts, asking(), failing("refused"))

    past.when(received(2, ResumeAsked())).then(MessageReceived, SessionFailed)


def test_a_finished_session_is_not_taken_over():
    given().when(started(), asking(), saying(), TAKEN).then_nothing()


def test_a_message_before_any_start_is_refused():
    given().when(said(1)).then_rejected("never_started")
    asked = StartAsked(agent=AGENT, asked_at=NOW)
    given().when(started(), received(2, asked)).then_rejected("started_before")


# I7: it led to the start itself.
def test_the_start_request_is_not_read_again():
    given().when(started(), received(1, StartAsked(agent=AGENT, asked_at=NOW))).then_nothing()
