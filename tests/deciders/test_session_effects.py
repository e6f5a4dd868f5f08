"""Tool calls: order, lost attempts, runners that cannot be reached (I5)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import RecoverTool
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    MessageReceived,
    ModelRequested,
    OutcomeCameLate,
    SessionContinued,
    SessionStopped,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.session_example import (
    agent,
    broken,
    later,
    question,
    received,
    returned,
    running,
    up_to_reply,
)

RUNNER = SessionWaiting(
    kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=later(600)
)


def test_repeatable_calls_run_in_parallel_and_any_other_alone():
    past = given().when(*up_to_reply("look", "put", "shout", "look"))

    assert ["1.0", "1.1"] == runs(past)
    past.when(running("1.0", "look"), running("1.1", "put"), returned("1.0"))
    assert [] == runs(past)
    past.when(returned("1.1"))
    assert ["1.2"] == runs(past)
    past.when(running("1.2"))
    assert [] == runs(past)


def test_a_start_names_the_next_attempt():
    given().when(*up_to_reply("shout"), running("1.0", attempt=2)).then_nothing()


def test_what_the_tool_itself_reports_is_not_tried_again():
    hopeful = broken("1.0", "tool_error").model_copy(update={"retry_at": later(5)})

    past = given().when(*up_to_reply("look"), running("1.0", "look"), hopeful)

    past.then(broken("1.0", "tool_error"), ModelRequested)


def test_a_call_out_of_order_does_not_start():
    given().when(*up_to_reply("shout", "look"), running("1.1", "look")).then_nothing()


def test_every_attempt_has_the_same_key():
    past = given().when(*up_to_reply("put"))
    first = due(past.state)[0]

    past.when(running("1.0", "put"), broken("1.0", "lost"))

    second = due(past.state)[0]
    assert (first.key, 1, 2) == (second.key, first.attempt, second.attempt)
    assert "session-default/1/1.0" == first.key


def test_a_started_call_is_recovered_after_a_crash():
    past = given().when(*up_to_reply("shout"), running("1.0"))

    assert [RecoverTool("1.0", 1, "session-default/1/1.0", "r1")] == due(past.state)


@pytest.mark.parametrize("name", ["look", "put"])
def test_a_repeatable_call_that_was_lost_runs_again_at_once(name):
    past = given().when(*up_to_reply(name), running("1.0", name), broken("1.0", "lost"))

    assert ["1.0"] == runs(past)


def test_a_call_that_keeps_getting_lost_is_told_to_the_model():
    past = given().when(*up_to_reply("look", spec=agent(max_retries=2, base_seconds=0)))
    for attempt in (1, 2, 3):
        past.when(running("1.0", "look", attempt), broken("1.0", "lost", attempt))
        past.when(SessionContinued(by="deadline", at=later(0)))

    assert ["2.m"] == [effect.effect for effect in due(past.state)]


def test_a_resume_does_not_wait_for_the_next_attempt():
    """As with a model call: who resumes wants it tried now."""
    past = given().when(*up_to_reply("look", spec=agent(base_seconds=50)))
    for attempt in (1, 2):
        past.when(running("1.0", "look", attempt), broken("1.0", "lost", attempt))
    assert [] == runs(past)

    past.when(received(2, ResumeAsked()))

    assert ["1.0"] == runs(past)
    assert wake_at(past.state) is None


def test_the_second_lost_attempt_is_waited_out():
    past = given().when(*up_to_reply("look", spec=agent(base_seconds=5)))

    past.when(running("1.0", "look"), broken("1.0", "lost"))
    past.when(running("1.0", "look", 2), broken("1.0", "lost", 2)).then(ToolFailed, SessionWaiting)
    assert later(5) == wake_at(past.state)
    past.when(SessionContinued(by="deadline", at=later(5))).then(SessionContinued)
    assert ["1.0"] == runs(past)


@pytest.mark.parametrize(("moment", "again"), [(4, []), (7, ["1.0"])])
def test_another_attempt_is_made_from_its_moment_on(moment, again):
    past = given().when(*up_to_reply("look", spec=agent(base_seconds=5)))
    past.when(running("1.0", "look"), broken("1.0", "lost"))
    past.when(running("1.0", "look", 2), broken("1.0", "lost", 2))

    past.when(SessionContinued(by="deadline", at=later(moment)))

    assert again == runs(past)


def test_a_short_wait_for_another_attempt_is_no_rest():
    past = given().when(*up_to_reply("look", spec=agent(base_seconds=1)))

    past.when(running("1.0", "look"), broken("1.0", "lost"))
    past.when(running("1.0", "look", 2), broken("1.0", "lost", 2)).then(ToolFailed)

    assert (Status.RUNNING, later(1)) == (past.state.status, wake_at(past.state))


def test_a_call_that_never_began_is_started_anew_whatever_it_declares():
    past = given().when(*up_to_reply("shout"), running("1.0"), broken("1.0", "not_started"))

    past.then(ToolFailed)
    assert ["1.0"] == runs(past)


def test_a_call_that_cannot_be_begun_waits_for_a_person_in_the_end():
    past = given().when(*up_to_reply("shout", spec=agent(max_retries=1)))
    past.when(running("1.0"), broken("1.0", "not_started"))

    past.when(running("1.0", attempt=2), broken("1.0", "not_started", 2))

    past.then(ToolFailed, SessionWaiting)
    assert ("operator", Cause(code="tool_failed", failure="not_started", message="gone")) == (
        past.state.waiting.kind,
        past.state.waiting.cause,
    )
    past.when(received(2, ResumeAsked()))
    assert ["1.0"] == runs(past)


# I14
def test_a_runner_that_cannot_be_reached_is_waited_for():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER).then(SessionWaiting)

    assert ("runner", later(600)) == (past.state.waiting.kind, wake_at(past.state))
    assert [] == due(past.state)


def test_a_paused_session_rests_while_a_runner_cannot_be_reached():
    past = given().when(*up_to_reply("shout"), running("1.0"), received(2, PauseAsked()))

    past.when(RUNNER).then(SessionWaiting, SessionWaiting)

    assert ("operator", later(600)) == (past.state.waiting.kind, wake_at(past.state))


def test_only_the_calls_of_the_runner_that_cannot_be_reached_wait_for_it():
    past = given().when(*up_to_reply("look", "put"), running("1.0", "look"), running("1.1", "put"))

    past.when(RUNNER.model_copy(update={"effects": ("1.1",)}))

    assert ("1.1",) == past.facts[0].effects
    assert [RecoverTool("1.0", 1, "session-default/1/1.0", "r1")] == due(past.state)


def test_a_wait_for_a_runner_is_never_put_off():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER)

    past.when(RUNNER.model_copy(update={"deadline_at": later(900)})).then_nothing()


def test_a_runner_that_comes_back_is_asked_before_the_deadline():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER)

    past.when(SessionContinued(by="runner")).then(SessionContinued)

    assert [RecoverTool] == owed(past)


@pytest.mark.parametrize(
    ("name", "fact"), [("shout", ToolInDoubt), ("pay", ToolInDoubt), ("look", ToolFailed)]
)
def test_a_call_is_lost_when_its_runner_does_not_come_back(name, fact):
    past = given().when(*up_to_reply(name), running("1.0", name), RUNNER)

    past.when(SessionContinued(by="deadline", at=later(600)))
    assert [RecoverTool] == owed(past)
    past.when(RUNNER.model_copy(update={"deadline_at": later(1200)})).then(fact)


# I14
def test_a_last_try_is_the_last_whatever_runner_comes():
    past = given().when(*up_to_reply("shout"), running("1.0"), RUNNER)
    past.when(SessionContinued(by="deadline", at=later(600)), SessionContinued(by="runner"))

    past.when(RUNNER.model_copy(update={"deadline_at": later(1200)})).then(ToolInDoubt)


def test_a_call_that_was_tried_before_and_cannot_be_reached_does_not_hold_up_a_stop():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), broken("1.0", "lost"))
    past.when(running("1.0", "look", 2), RUNNER)

    past.when(received(2, StopAsked())).then(MessageReceived, ToolFailed, SessionStopped)


def test_a_call_that_no_runner_takes_ends_in_a_question_to_the_operator():
    past = given().when(*up_to_reply("shout"), RUNNER)
    past.when(SessionContinued(by="deadline", at=later(600)))

    past.when(RUNNER).then(SessionWaiting)

    assert "runner_unreachable" == past.state.hold.cause.code
    past.when(received(2, ResumeAsked()))
    assert ["1.0"] == runs(past)
    assert "runner" == past.when(RUNNER).state.waiting.kind


# D15
def test_an_outcome_that_nobody_waits_for_changes_nothing():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), returned("1.0"))
    before = past.state

    past.when(returned("1.0")).then(
        OutcomeCameLate(effect="1.0", attempt=1, outcome="ToolReturned")
    )

    assert before == past.state


def test_an_outcome_of_an_older_attempt_comes_late():
    past = given().when(*up_to_reply("look"), running("1.0", "look"), broken("1.0", "lost"))

    past.when(running("1.0", "look", 2), returned("1.0", attempt=1)).then(OutcomeCameLate)


def test_a_question_that_is_not_due_is_not_asked():
    given().when(*up_to_reply("look"), question("1.0", "1.1.0.1")).then_nothing()


def test_parallel_results_are_presented_in_call_order():
    past = given().when(*up_to_reply("look", "put"), running("1.0", "look"))
    past.when(running("1.1", "put"), returned("1.1", "second"), returned("1.0", "first"))

    other = given().when(*up_to_reply("look", "put"), running("1.0", "look"))
    other.when(running("1.1", "put"), returned("1.0", "first"), returned("1.1", "second"))

    past.then(ToolReturned, ModelRequested)
    assert past.facts[1].digest == other.facts[1].digest
