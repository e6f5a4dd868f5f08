"""Calls that go on as a task of their server, and are polled without a process in between."""

import json

import pytest

from cueline.deciders.retry import poll_at, task_deadline
from cueline.deciders.session import Status, due, evolve, wake_at
from cueline.deciders.session.due import AskApproval, CloseApproval, PollTask, RunTool
from cueline.deciders.session.state import MAX_TAKEOVERS
from cueline.events.inbox import PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalResolved,
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.deciders.policy_session import policy
from tests.session_example import (
    NOW,
    broken,
    decided,
    deferred,
    later,
    question,
    received,
    returned,
    running,
    said,
    tool_asking,
    up_to_reply,
    working,
)


def task(name="shout", **more):
    """Return the past of a session whose call goes on as a task."""
    spec = policy(approval=("off",), **more)
    return given().when(*up_to_reply(name, spec=spec), running("1.0", name), deferred("1.0"))


def at(seconds):
    return SessionContinued(by="deadline", at=later(seconds))


def polling(name="shout", **more):
    return task(name, **more).when(at(2))


def asking(**more):
    """Return the past of a session whose task asks a person."""
    ask = tool_asking("1.0", attempt=2)
    return polling(**more).when(ask, question("1.0", "1.1.0.1", "what_to_answer"))


def test_a_task_holds_no_process_until_its_poll_is_due():
    past = task()

    past.then(deferred("1.0"), SessionWaiting)
    wait = past.facts[-1]
    assert ("task", "task_working", "shout") == (wait.kind, wait.cause.code, wait.cause.name)
    assert later(2) == wait.deadline_at == wake_at(past.state)
    assert [] == owed(past)


def test_a_poll_is_due_at_its_time():
    past = polling()

    past.then(at(2))
    assert Status.RUNNING is past.state.status
    assert [PollTask("1.0", 2, "session-default/1/1.0")] == due(past.state)


def test_a_task_that_goes_on_takes_two_facts_a_poll():
    past = polling()
    past.when(working("1.0", 5))

    past.then(working("1.0", 5))
    assert later(5) == wake_at(past.state)
    past.when(at(5))
    past.then(at(5))
    assert [3] == [effect.attempt for effect in due(past.state)]


def test_the_result_of_a_task_is_that_of_the_call():
    past = polling().when(working("1.0", 5), at(5), returned("1.0", "done", attempt=3))

    past.then(ToolReturned, ModelRequested)


def test_a_poll_counts_only_while_it_is_the_last_one():
    past = polling().when(working("1.0", 5))

    past.when(deferred("1.0", attempt=2)).then_nothing()
    past.when(at(5), returned("1.0", attempt=3))
    past.when(working("1.0", 9)).then_nothing()


# I5: a task that its server does not know any more may have had effects.
def test_a_task_that_is_unknown_is_in_doubt():
    past = polling().when(broken("1.0", "lost", attempt=2))

    past.then(ToolInDoubt)
    assert ["did_it_happen"] == [each.question for each in due(past.state)]


def test_an_unknown_task_of_a_call_that_may_run_twice_is_begun_again():
    past = polling("look").when(broken("1.0", "lost", attempt=2))

    (run,) = due(past.state)
    assert isinstance(run, RunTool)
    assert 3 == run.attempt


def test_a_task_that_failed_is_not_begun_again():
    past = polling("look").when(broken("1.0", "tool_error", attempt=2))

    past.then(ToolFailed, ModelRequested)


def test_a_task_that_is_kept_longer_has_another_deadline():
    longer = deferred("1.0", attempt=2, poll=9, ends=7200)
    past = polling().when(longer)

    assert longer.deadline_at == past.state.call("1.0").task.deadline_at
    assert later(9) == wake_at(past.state)


def test_a_task_may_ask_a_person_and_the_next_poll_has_the_answer():
    past = asking()
    assert past.facts[-1].kind == "approval"
    assert [] == runs(past)

    past.when(decided(2, "1.1.0.1", "granted", result='{"which": {}}'))

    assert [PollTask("1.0", 3, "session-default/1/1.0")] == due(past.state)
    assert '{"which": {}}' == past.state.call("1.0").input.answer


def test_a_task_waits_for_a_person_before_it_is_polled_again():
    past = polling().when(tool_asking("1.0", attempt=2))

    (ask,) = due(past.state)
    assert isinstance(ask, AskApproval)
    assert tool_asking("1.0").digest == ask.digest


@pytest.mark.parametrize("verdict", ["denied", "expired", "superseded"])
def test_a_question_without_an_answer_is_refused_and_the_task_goes_on(verdict):
    past = asking(on_deny="pause", on_expiry="pause")
    past.when(ApprovalResolved(approval="1.1.0.1", verdict=verdict, by="ada"))

    assert {"which": False} == json.loads(past.state.call("1.0").input.answer)
    assert [PollTask] == owed(past)


def test_a_steer_ends_no_task():
    past = polling().when(said(2, lane="steer"))
    assert [PollTask] == owed(past)

    past.when(tool_asking("1.0", attempt=2), question("1.0", "1.1.0.1", "what_to_answer"))
    (close,) = due(past.state)
    assert isinstance(close, CloseApproval)
    assert "steer" == close.superseded_by


def test_a_paused_session_polls_nothing_until_it_is_resumed():
    past = task().when(received(2, PauseAsked()), at(2))
    assert [] == owed(past)
    assert None is wake_at(past.state)

    past.when(received(3, ResumeAsked()))

    assert [PollTask] == owed(past)


def test_a_stopped_session_ends_after_it_has_told_the_server():
    past = task().when(received(2, StopAsked()))
    assert [PollTask] == owed(past)

    past.when(working("1.0", 5))
    assert [3] == [each.attempt for each in due(past.state)]
    past.when(broken("1.0", "lost", attempt=3))

    past.then(ToolInDoubt, SessionStopped)


def test_a_session_that_killed_its_hosts_is_stopped_without_the_server():
    past = polling()
    for epoch in range(2, 2 + MAX_TAKEOVERS):
        past.when(SessionTakenOver(epoch=epoch, at=NOW))
    assert past.state.poisoned

    past.when(received(2, StopAsked()))

    past.then(MessageReceived, ToolInDoubt, SessionStopped)


def test_a_poll_that_succeeds_forgives_the_hosts_that_died():
    past = polling().when(SessionTakenOver(epoch=2, at=NOW), working("1.0", 5))

    assert 0 == past.state.takeovers


def test_a_task_of_a_call_that_is_over_changes_nothing():
    past = polling().when(returned("1.0", attempt=2))

    for fact in (deferred("1.0", attempt=2), deferred("7.0"), working("1.0", 9)):
        after = evolve(past.state, fact)
        assert past.state.turn == after.turn


def test_polls_grow_rarer_with_the_age_of_the_task():
    waits = [
        (poll_at(NOW, later(age), 0.0) - later(age)).total_seconds()
        for age in (0, 40, 600, 7200, 86_400)
    ]

    assert [2, 10, 60, 120, 600] == waits
    assert later(600 + 90) == poll_at(NOW, later(600), 90)


def test_a_server_that_keeps_no_task_for_a_time_is_asked_for_a_week():
    assert later(3600) == task_deadline(NOW, 3600)
    assert later(7 * 86_400) == task_deadline(NOW, None)
    assert later(365 * 86_400) == task_deadline(NOW, 1e18)
