"""A crash is no status: who acquires a session goes on with it (C6, D38)."""

from decimal import Decimal

import pytest

from cueline.deciders.session import due, wake_at
from cueline.deciders.session.due import RecoverTool
from cueline.events.codes import Cause
from cueline.events.inbox import ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    ModelRequested,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolInDoubt,
)
from cueline.events.status import Status
from cueline.testing.given import given
from tests.deciders.owed import owed
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

TAKEN = SessionTakenOver(epoch=2, at=NOW)
LIMITED = agent(max_cost=Decimal(1))


def test_a_takeover_makes_the_model_call_again():
    past = given().when(started(), asking(), TAKEN).then(SessionTakenOver, ModelRequested)

    assert (2, ()) == (past.facts[1].attempt, past.facts[1].messages)


def test_a_takeover_recovers_the_calls_that_were_started():
    past = given().when(*up_to_reply("shout"), running("1.0"), TAKEN).then(SessionTakenOver)

    assert [RecoverTool] == owed(past)


def test_a_session_at_rest_has_no_host_to_take_it_over_from():
    given().when(started(open=True), asking(), saying(), TAKEN).then_nothing()


def poisoned():
    past = given().when(*up_to_reply("shout"), running("1.0"))
    return past.when(TAKEN, TAKEN, TAKEN)


def test_a_session_that_took_down_three_hosts_waits_for_an_operator():
    past = poisoned().then(SessionTakenOver, SessionWaiting)

    assert (Cause(code="hosts_died", times=3), [], None) == (
        past.state.hold.cause,
        due(past.state),
        wake_at(past.state),
    )
    past.when(said(2)).then(MessageReceived)
    past.when(received(3, ResumeAsked()))
    assert [RecoverTool] == owed(past)


def test_a_session_that_was_handed_over_three_times_has_taken_down_no_host():
    handed_over = SessionTakenOver(epoch=2, handed_over=True, at=NOW)

    past = given().when(*up_to_reply("shout"), handed_over, handed_over, handed_over)

    assert (0, None) == (past.state.takeovers, past.state.hold)


# 003-057: the hosts of many died often enough while these waited for one of the slots.
@pytest.mark.parametrize("waits", [up_to_reply("shout"), [started(LIMITED)]], ids=["slot", "grant"])
def test_a_session_for_which_nothing_ran_has_taken_down_no_host(waits):
    past = given().when(*waits, TAKEN, TAKEN, TAKEN)

    assert (0, None, Status.RUNNING) == (past.state.takeovers, past.state.hold, past.state.status)


def test_hosts_that_died_while_a_call_waited_do_not_count_once_it_runs():
    past = given().when(*up_to_reply("shout"), TAKEN, TAKEN, running("1.0"), TAKEN)

    assert (1, None) == (past.state.takeovers, past.state.hold)


def test_a_call_in_doubt_that_takes_its_hosts_down_as_it_is_reconciled_waits_for_an_operator():
    past = given().when(*up_to_reply("pay"), running("1.0", "pay"), broken("1.0", "lost"))

    past.when(TAKEN, TAKEN, TAKEN).then(SessionTakenOver, SessionWaiting)


def test_nothing_starts_in_a_session_that_took_down_three_hosts():
    past = given().when(*up_to_reply("look", "put"), running("1.1", "put"), TAKEN, TAKEN, TAKEN)

    past.when(running("1.0", "look")).then_nothing()


def poisoned_with_a_question():
    past = given().when(*up_to_reply("look", "burn"), running("1.0", "look"))
    return past.when(question("1.1", "1.1.1.1"), TAKEN, TAKEN, TAKEN)


def test_a_poisoned_session_has_no_deadline_to_be_woken_by():
    past = poisoned_with_a_question()

    assert past.state.waiting.deadline_at is None


def test_a_poisoned_session_takes_no_answer_before_a_person_has_looked():
    past = poisoned_with_a_question()

    expired = ApprovalResolved(approval="1.1.1.1", verdict="expired", by="clock")
    past.when(expired).then_nothing()
    past.when(received(2, ResumeAsked()), expired)
    assert ApprovalResolved in map(type, past.facts)


# I14
def test_a_poisoned_session_that_is_stopped_withdraws_its_question():
    past = poisoned_with_a_question()

    past.when(received(2, StopAsked()))

    assert [("1.1.1.1", "stop")] == [(e.approval, e.superseded_by) for e in due(past.state)]


def test_a_session_may_take_down_two_hosts_before_anything_has_finished():
    past = given().when(started(), asking(), TAKEN, asking(attempt=2), TAKEN)

    past.then(SessionTakenOver, ModelRequested)
    past.when(asking(attempt=3), TAKEN).then(SessionTakenOver, SessionWaiting)


def test_a_finished_effect_clears_the_count_of_takeovers():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), TAKEN, TAKEN)

    past.when(returned("1.0"), asking(turn=2), TAKEN)

    assert 1 == past.state.takeovers


@pytest.mark.parametrize(("kind", "left"), [("cancelled", 0), ("overloaded", 2)])
def test_a_model_call_that_its_host_lived_to_end_clears_it_and_one_that_failed_does_not(kind, left):
    past = given().when(started(), asking(), TAKEN, asking(attempt=2), TAKEN, asking(attempt=3))

    past.when(failing(kind, attempt=3))

    assert left == past.state.takeovers


def test_a_session_that_takes_its_hosts_down_while_it_stops_is_stopped():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, StopAsked()))

    past.when(TAKEN, TAKEN, TAKEN).then(SessionTakenOver, ToolInDoubt, SessionStopped)
