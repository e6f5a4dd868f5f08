"""What a denial, or the lack of an answer, makes of a session (C12, C13, C15)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import CloseApproval, RunTool
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionFailed,
    SessionStopped,
    SessionWaiting,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.deciders.owed import owed
from tests.deciders.policy_session import ASKED, asked, policy, resolved, rule
from tests.session_example import (
    decided,
    later,
    question,
    received,
    up_to_reply,
)


# C13
def test_a_denial_may_pause_the_session():
    past = asked(on_deny="pause").when(decided(2, "1.1.0.1", "denied"))

    past.then(MessageReceived, ApprovalResolved, ToolSkipped, SessionWaiting)
    # 004-033: the words of the source are kept.
    assert "call_denied" == past.state.hold.cause.code
    past.when(received(3, ResumeAsked())).then(MessageReceived, ModelRequested)


# C13
def test_a_denial_may_end_the_session():
    past = asked(on_deny="cancel").when(decided(2, "1.1.0.1", "denied", "no"))

    past.then(MessageReceived, ApprovalResolved, SessionStopped)
    assert SessionStopped(by="ada", code="call_denied", reason="no") == past.facts[-1]


def test_a_denial_that_ends_the_session_withdraws_the_other_questions():
    past = asked("burn", on_deny="cancel")
    past.when(question("1.1", "1.1.1.1", name="burn"), decided(2, "1.1.0.1", "denied"))

    past.then(MessageReceived, ApprovalResolved)
    assert ["stop"] == [effect.superseded_by for effect in due(past.state)]
    past.when(resolved("superseded", "stop", "1.1.1.1")).then(ApprovalResolved, SessionStopped)


# C12, 003-020, 004-034, 004-080, D27: expiry leads to a defined state, and the call never runs.
@pytest.mark.parametrize(
    ("on_expiry", "status"),
    [
        ("pause", Status.WAITING),
        ("deny_and_continue", Status.RUNNING),
        ("fail", Status.FAILED),
    ],
)
def test_an_expired_call_never_runs(on_expiry, status):
    past = asked(on_expiry=on_expiry).when(resolved("expired", "clock"))

    assert status is past.state.status
    assert RunTool not in owed(past)
    assert (on_expiry == "pause") == (past.state.hold is not None)


def test_an_approval_that_expires_during_a_pause_leaves_the_session_paused():
    past = asked().when(received(2, PauseAsked()), resolved("expired", "clock"))

    assert "asked" == past.state.hold.cause.code


def test_a_session_that_fails_for_want_of_a_decision_says_so():
    past = asked(on_expiry="fail").when(resolved("expired", "clock"))

    past.then(ApprovalResolved, SessionFailed)
    assert "approval_expired" == past.facts[-1].kind
    assert SessionFailed(kind="approval_expired", approval="1.1.0.1") == past.facts[-1]


# 003-020
def test_others_are_asked_once_when_nobody_answered():
    past = asked(on_expiry="escalate").when(resolved("expired", "clock"))

    past.then(ApprovalResolved, SessionContinued)
    assert ["1.1.0.2"] == [effect.approval for effect in due(past.state)]
    again = question("1.0", "1.1.0.2").model_copy(update={"escalated": True})
    past.when(again, resolved("expired", "clock", "1.1.0.2"))
    assert "approval_expired" == past.state.hold.cause.code


IN_TIME = ASKED.model_copy(update={"auto_at": later(3)})


# 003-058, C15, C20: the time is in the fact that asks, and survives every restart.
def test_a_session_wakes_for_an_automatic_grant():
    past = given().when(*up_to_reply("delete", spec=policy(auto_approve_after=3)), IN_TIME)

    assert later(3) == wake_at(past.state) == past.state.waiting.deadline_at
    assert [CloseApproval("1.0", "1.1.0.1", later(3), None)] == due(past.state)
    past.when(resolved("granted", "auto:auto_approve_after"))
    assert [later(300)] == [effect.valid_until for effect in due(past.state)]


# C15, C17
def test_what_is_for_certain_people_is_never_granted_automatically():
    spec = policy(auto_approve=True, rules=(rule("ask", votes=2),))
    for_people = ASKED.model_copy(update={"people_only": True})

    past = given().when(*up_to_reply("delete", spec=spec), for_people)

    past.then(ApprovalRequested, SessionWaiting)
