"""Calls that ask a person before they do anything, and go on with the answer."""

import pytest

from cueline.deciders.session import Status, due, evolve
from cueline.deciders.session.due import AskApproval, RunTool
from cueline.deciders.session.permission import allowing_rule
from cueline.events.inbox import PauseAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    ModelRequested,
    SessionStopped,
    SessionWaiting,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.deciders.policy_session import policy
from tests.session_example import (
    WHICH,
    broken,
    decided,
    question,
    received,
    returned,
    running,
    said,
    tool_asking,
    up_to_reply,
)


def asked(name="shout", **more):
    """Return the past of a session whose call has asked."""
    spec = policy(approval=("off",), **more)
    start = (*up_to_reply(name, spec=spec), running("1.0", name))
    return given().when(*start, tool_asking("1.0", state="sealed"))


def asked_of_a_person(name="shout", **more):
    return asked(name, **more).when(question("1.0", "1.1.0.1", "what_to_answer"))


def answered(name="shout"):
    answer = decided(2, "1.1.0.1", "granted", result='{"which": {}}')
    return asked_of_a_person(name).when(answer)


def test_a_call_that_asks_is_put_before_a_person_by_the_digest_of_its_requests():
    past = asked()

    past.then(tool_asking("1.0", state="sealed"))
    (ask,) = due(past.state)
    assert isinstance(ask, AskApproval)
    assert ("what_to_answer", tool_asking("1.0").digest) == (ask.question, ask.digest)


def test_it_holds_no_process_while_it_waits():
    past = asked_of_a_person()

    assert isinstance(past.facts[-1], SessionWaiting)
    assert Status.WAITING is past.state.status
    assert [] == runs(past)


@pytest.mark.parametrize("name", ["shout", "look"])
def test_the_answered_call_runs_once_more_with_the_answer(name):
    past = answered(name)

    (run,) = due(past.state)
    assert isinstance(run, RunTool)
    assert ("1.0", 2) == (run.effect, run.attempt)
    call = past.state.call("1.0")
    assert ('{"which": {}}', "sealed") == (call.input.answer, call.input.state)
    assert "granted by ada" == allowing_rule(call)


# I5: the answer is a grant for one start.
def test_an_answered_call_that_is_lost_is_in_doubt():
    past = answered().when(running("1.0", attempt=2), broken("1.0", "lost", attempt=2))

    assert [("1.1.0.2", "did_it_happen")] == [(e.approval, e.question) for e in due(past.state)]


def test_it_may_ask_again():
    past = answered().when(running("1.0", attempt=2), tool_asking("1.0", attempt=2))

    assert [("1.1.0.2", "what_to_answer")] == [(e.approval, e.question) for e in due(past.state)]


def test_an_answer_that_was_not_used_in_time_is_kept_and_the_call_asked_about():
    past = answered()
    late = ApprovalResolved(approval="1.1.0.1", verdict="superseded", by="deadline")

    past.when(late)

    assert [("1.1.0.2", "may_it_run")] == [(e.approval, e.question) for e in due(past.state)]
    assert past.state.call("1.0").input.answer


def test_a_refusal_ends_the_call():
    past = asked_of_a_person().when(decided(2, "1.1.0.1", "denied", "none"))

    past.then(MessageReceived, ApprovalResolved, ToolSkipped, ModelRequested)
    assert "Action rejected by human operator: none" == past.facts[2].reason


def test_nobody_who_answers_in_time_ends_the_call_where_the_policy_goes_on():
    past = asked_of_a_person(on_expiry="deny_and_continue")
    past.when(ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock"))

    past.then(ApprovalResolved, ToolSkipped, ModelRequested)
    assert "Action rejected: approval timeout" == past.facts[1].reason


def test_a_steer_ends_a_call_that_asks():
    past = asked()
    past.when(said(2, lane="steer"))

    past.then(MessageReceived, ToolSkipped, ModelRequested)


def test_a_paused_session_asks_nobody():
    past = asked().when(received(2, PauseAsked()))

    assert [] == owed(past)


def test_a_stopped_session_does_not_wait_for_the_answer():
    past = asked().when(received(2, StopAsked()))

    assert isinstance(past.facts[-1], SessionStopped)


def test_an_outcome_that_asks_counts_only_for_the_running_attempt():
    past = answered().when(running("1.0", attempt=2))

    past.when(tool_asking("1.0")).then_nothing()
    past.when(returned("1.0", attempt=2))
    past.when(tool_asking("1.0", attempt=2)).then_nothing()


def test_the_requests_stay_in_the_state_until_the_call_is_over():
    assert (WHICH,) == asked().state.call("1.0").input.requests


def test_a_question_of_a_call_that_is_over_changes_nothing():
    past = answered().when(running("1.0", attempt=2), returned("1.0", attempt=2))

    for effect in ("1.0", "7.0"):
        assert past.state == evolve(past.state, tool_asking(effect, attempt=2))
