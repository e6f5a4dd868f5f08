"""Questions to a person, as the session sees them (I9)."""

import pytest

from cueline.deciders.session import Status, allowing_rule, due, order_digest, wake_at
from cueline.deciders.session.derived_events import STEERED
from cueline.deciders.session.due import AskApproval, CloseApproval, RunTool
from cueline.deciders.session.question import approval_answered
from cueline.events.agent import Workspace
from cueline.events.codes import Refusal
from cueline.events.inbox import DecisionGiven, ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    GateAnswer,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    SessionContinued,
    SessionStopped,
    SessionWaiting,
    ToolSkipped,
    ToolStarted,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.session_example import (
    AGENT,
    agent,
    broken,
    decided,
    later,
    question,
    received,
    returned,
    running,
    said,
    up_to_reply,
)

ASKED = question("1.0", "1.1.0.1")


def resolved(verdict, by="ada", approval="1.1.0.1"):
    return ApprovalResolved(approval=approval, verdict=verdict, by=by)


def asked():
    return given().when(*up_to_reply("delete"), ASKED)


def told_of_skips(past):
    return [fact.reason for fact in past.facts if isinstance(fact, ToolSkipped)]


# 000-004, 000-008, 000-024, 000-050, 000-051, 004-049, 004-076, C16:
# the wait is a fact, and holds nothing;
# what is sensitive is so by its declaration, never by its name.
def test_a_sensitive_call_waits_for_a_person():
    past = given().when(*up_to_reply("delete")).then(ModelReplied)

    assert [AskApproval] == owed(past)
    past.when(running("1.0", "delete")).then_nothing()
    past.when(ASKED).then(ApprovalRequested, SessionWaiting)
    assert ("approval", later(300)) == (past.state.waiting.kind, past.state.waiting.deadline_at)


# 000-023, 000-052
def test_nobody_is_asked_where_the_policy_is_off():
    past = given().when(*up_to_reply("delete", spec=agent(approval="off")))

    assert [RunTool] == owed(past)
    assert "off" == allowing_rule(past.state.call("1.0"))


# 000-054
def test_a_granted_call_runs_until_the_deadline_of_its_grant():
    past = asked().when(decided(2, "1.1.0.1", "granted"))

    past.then(MessageReceived, resolved("granted"), SessionContinued(by="work"))
    assert [later(300)] == [effect.valid_until for effect in due(past.state)]
    assert "granted by ada" == allowing_rule(past.state.call("1.0"))
    past.when(running("1.0", "delete")).then(ToolStarted)


WHOLE = {
    "session": "session-default/1",
    "effect": "1.0",
    "tool": "delete",
    "tool_digest": "d",
    "arguments": {"path": "a"},
    "workspace": ("m", "/srv"),
}


# I9, C18: what is granted is what runs; another schema of the tool is another call.
@pytest.mark.parametrize(
    "other",
    [
        {"session": "session-default/2"},
        {"effect": "1.1"},
        {"tool": "burn"},
        {"tool_digest": "e"},
        {"arguments": {"path": "b"}},
        {"arguments": {}},
        {"workspace": ("m", "/")},
        {"workspace": None},
    ],
    ids=str,
)
def test_the_digest_is_of_exactly_what_will_run(other):
    assert order_digest(**WHOLE) == order_digest(**WHOLE | {"arguments": {"path": "a"}})
    assert order_digest(**WHOLE) != order_digest(**WHOLE | other)


def test_what_is_asked_about_is_the_digest_of_the_call():
    (asked_about,) = due(given().when(*up_to_reply("delete")).state)

    tool = {"tool": "delete", "tool_digest": "delete", "arguments": {}, "workspace": None}
    assert order_digest(**WHOLE | tool) == asked_about.digest


# I9: the runner computes it again, of where it would run too.
def test_what_is_asked_about_is_to_run_in_the_sessions_workspace():
    spec = AGENT.model_copy(update={"workspace": Workspace(machine="m", path="/srv/work")})
    asked_about = due(given().when(*up_to_reply("delete", spec=spec)).state)[0]

    tool = {"tool": "delete", "tool_digest": "delete", "arguments": {}}
    place = {"workspace": ("m", "/srv/work")}
    assert order_digest(**WHOLE | tool | place) == asked_about.digest


# I9, C18
def test_a_grant_for_something_else_is_asked_for_again():
    past = given().when(*up_to_reply("delete"), question("1.0", "1.1.0.1", name="look"))

    past.when(decided(2, "1.1.0.1", "granted"))

    assert ["1.1.0.2"] == [effect.approval for effect in due(past.state)]


# 000-055
@pytest.mark.parametrize(("note", "told"), [("", ""), ("not that one", ": not that one")])
def test_a_denied_call_is_told_to_the_model_and_the_session_goes_on(note, told):
    past = asked().when(decided(2, "1.1.0.1", "denied", note))

    past.then(MessageReceived, ApprovalResolved, ToolSkipped, ModelRequested)
    assert [f"Action rejected by human operator{told}"] == told_of_skips(past)


# 000-026, 000-056
def test_an_expired_call_is_rejected_and_the_session_is_paused():
    past = asked().when(resolved("expired", "clock"))

    past.then(ApprovalResolved, ToolSkipped, SessionWaiting)
    assert ["Action rejected: approval timeout"] == told_of_skips(past)
    assert "approval_expired" == past.state.hold.cause.code
    past.when(received(2, ResumeAsked())).then(MessageReceived, ModelRequested)


def test_the_gate_is_told_when_the_time_is_over():
    past = asked()

    assert [CloseApproval("1.0", "1.1.0.1", later(300), None)] == due(past.state)
    assert later(300) == wake_at(past.state)


# 000-027
def test_what_is_approved_automatically_is_recorded_as_asked_and_granted():
    past = given().when(*up_to_reply("delete", spec=agent(auto_approve=True)), ASKED)

    past.then(ApprovalRequested, resolved("granted", "auto:agent example"))
    past.when(resolved("granted", "auto:agent example")).then_nothing()
    assert [RunTool] == owed(past)


def test_a_call_in_doubt_is_never_resolved_automatically():
    spec = agent(auto_approve=True)
    past = given().when(*up_to_reply("shout", spec=spec), running("1.0"), broken("1.0", "lost"))

    past.when(question("1.0", "1.1.0.1", "did_it_happen")).then(ApprovalRequested, SessionWaiting)


def test_a_grant_that_outlived_its_deadline_is_asked_for_again():
    past = asked().when(decided(2, "1.1.0.1", "granted"), resolved("superseded", "deadline"))

    assert ["1.1.0.2"] == [effect.approval for effect in due(past.state)]


@pytest.mark.parametrize("after", [[], [returned("1.0")]])
def test_a_grant_that_was_used_cannot_be_taken_back(after):
    past = asked().when(decided(2, "1.1.0.1", "granted"), running("1.0", "delete"), *after)

    past.when(resolved("superseded", "deadline")).then_nothing()


def test_a_grant_cannot_be_taken_back_by_a_late_expiry():
    asked().when(decided(2, "1.1.0.1", "granted"), resolved("expired", "clock")).then_nothing()


def test_a_steer_withdraws_the_question_before_the_call_is_skipped():
    past = asked().when(said(2, lane="steer"))

    past.then(MessageReceived, SessionContinued)
    assert "steer" == due(past.state)[0].superseded_by
    past.when(resolved("superseded", "steer"))
    past.then(ApprovalResolved, ToolSkipped(effect="1.0", reason=STEERED), ModelRequested)


def test_a_stop_withdraws_the_question_before_the_end():
    past = asked().when(received(2, StopAsked())).then(MessageReceived)

    assert "stop" == due(past.state)[0].superseded_by
    past.when(resolved("superseded", "stop")).then(ApprovalResolved, SessionStopped)


def test_a_decision_that_the_gate_did_not_take_is_refused():
    given_late = DecisionGiven(approval="1.1.0.1", digest="d", verdict="grant", by="ada")
    answer = GateAnswer(approval="1.1.0.1", verdict=None, refusal=Refusal(code="too_late"))

    past = asked()

    past.when(received(2, given_late, answer)).then_rejected("too_late")
    past.when(received(3, given_late)).then_rejected("no_such_approval")


def test_an_answer_about_a_call_that_is_gone_changes_nothing():
    state = asked().state

    assert state is approval_answered(state, GateAnswer(approval="7.1.0.1", verdict="granted"))


def test_other_calls_go_on_while_a_person_is_asked():
    past = (
        given()
        .when(*up_to_reply("burn", "look"), question("1.0", "1.1.0.1", name="burn"))
        .then(ApprovalRequested)
    )

    assert "1.1" in runs(past)
    past.when(running("1.1", "look"), returned("1.1"))
    assert Status.WAITING is past.state.status


# I9: the grant is used up; whether it happened is another question.
def test_a_granted_call_in_doubt_is_another_question():
    past = asked().when(decided(2, "1.1.0.1", "granted"), running("1.0", "delete"))

    past.when(broken("1.0", "lost"))

    assert [("1.1.0.2", "did_it_happen")] == [(e.approval, e.question) for e in due(past.state)]


def test_an_expired_question_about_what_happened_is_asked_again_after_a_resume():
    past = given().when(*up_to_reply("shout"), running("1.0"), broken("1.0", "lost"))
    past.when(question("1.0", "1.1.0.1", "did_it_happen"), resolved("expired", "clock"))

    assert [] == due(past.state)
    past.when(received(2, ResumeAsked()))
    assert ["1.1.0.2"] == [effect.approval for effect in due(past.state)]
