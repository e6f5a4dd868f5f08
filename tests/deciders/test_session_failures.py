"""Failures that pass: what is tried again, when, how often (C1, C3, 000-014, 004-002)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import RunTool
from cueline.events.agent_parts import RetryPolicy
from cueline.events.inbox import ResumeAsked
from cueline.events.session import (
    ModelFailed,
    ModelRequested,
    SessionContinued,
    SessionWaiting,
    ToolFailed,
)
from cueline.testing.given import given
from tests.session_example import (
    agent,
    asking,
    broken,
    failing,
    later,
    received,
    running,
    said,
    started,
    up_to_reply,
)

PASSING = ["rate_limited", "overloaded", "unavailable", "timeout", "network", "malformed_reply"]
LASTING = ["tool_error", "invalid_arguments", "killed", "unknown", "auth", "cancelled"]


def failed(name, kind, spec=None):
    spec = spec or agent(base_seconds=1)
    return given().when(*up_to_reply(name, spec=spec), running("1.0", name), broken("1.0", kind))


def keys(past):
    return [(e.key, e.attempt) for e in due(past.state) if isinstance(e, RunTool)]


@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize("name", ["look", "put"])
def test_a_call_that_may_be_repeated_is_tried_again_with_the_same_key(name, kind):
    past = failed(name, kind)

    past.then(ToolFailed)
    assert later(1) == past.facts[0].retry_at
    past.when(SessionContinued(by="deadline", at=later(1)))
    assert [("session-default/1/1.0", 2)] == keys(past)


# D9: a call of which nothing is declared is made at most once.
@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize("name", ["shout", "pay"])
def test_any_other_call_is_never_tried_again(name, kind):
    failed(name, kind).then(broken("1.0", kind), ModelRequested)


@pytest.mark.parametrize("kind", LASTING)
def test_a_failure_that_lasts_is_told_to_the_model(kind):
    failed("look", kind).then(broken("1.0", kind), ModelRequested)


def test_a_message_says_nothing_of_the_kind():
    misleading = broken("1.0", "tool_error").model_copy(update={"message": "network timeout 503"})

    past = given().when(*up_to_reply("look"), running("1.0", "look"), misleading)

    past.then(misleading, ModelRequested)


def test_after_its_last_retry_the_failure_is_told_to_the_model():
    past = given().when(*up_to_reply("look", spec=agent(max_retries=2, base_seconds=0)))
    for attempt in (1, 2, 3):
        past.when(running("1.0", "look", attempt), broken("1.0", "network", attempt))
        past.when(SessionContinued(by="deadline", at=later(0)))

    assert ["2.m"] == [effect.effect for effect in due(past.state)]


def test_what_a_tool_asks_for_is_waited_out():
    asks = broken("1.0", "rate_limited").model_copy(update={"retry_after": 30.0})

    past = given().when(*up_to_reply("look"), running("1.0", "look"), asks)

    past.then(ToolFailed, SessionWaiting)
    assert ("retry", later(30)) == (past.state.waiting.kind, wake_at(past.state))


# I12
def test_a_long_wait_rests_the_session_and_a_short_one_does_not():
    assert Status.WAITING is failed("look", "network", agent(base_seconds=2)).state.status
    assert Status.RUNNING is failed("look", "network", agent(base_seconds=1.9)).state.status


def patient(seconds, **fields):
    policy = RetryPolicy(base_seconds=seconds, jitter=0)
    tools = tuple(
        tool.model_copy(update={"retry": policy}) if fields.get("tool") else tool
        for tool in agent().tools
    )
    return {"tools": tools} if fields.get("tool") else {"tool_retry": policy}


# 003-014, C1: nothing starts a session that failed again.
def test_a_session_that_failed_stays_so():
    past = given().when(started(), asking(), failing("refused"))

    assert (Status.FAILED, [], None) == (past.state.status, due(past.state), wake_at(past.state))
    past.when(received(2, ResumeAsked())).then_rejected("session_ended")


# 004-014: by tool, else by the agent's tools, else as model calls are.
def test_the_nearest_policy_counts():
    spec = agent(base_seconds=1)
    of_agent = spec.model_copy(update=patient(5))
    of_tool = of_agent.model_copy(update=patient(9, tool=True))

    waits = [
        failed("look", "network", each).facts[0].retry_at for each in (spec, of_agent, of_tool)
    ]

    assert [later(1), later(5), later(9)] == waits


def test_the_agents_tools_do_not_speak_for_its_model():
    spec = agent(base_seconds=1).model_copy(update=patient(5))

    past = given().when(started(spec), asking(), failing("overloaded"))

    assert later(1) == past.facts[0].retry_at


def test_a_deadline_counts_from_the_first_failure():
    policy = RetryPolicy(base_seconds=4, jitter=0, deadline_seconds=10)
    spec = agent().model_copy(update={"retry": policy})
    past = given().when(started(spec), asking(), failing("overloaded"))
    past.when(SessionContinued(by="deadline", at=later(4)), asking(attempt=2))

    past.when(failing("overloaded", attempt=2, at=later(4)))

    past.then(ModelFailed, SessionWaiting)
    assert None is past.facts[0].retry_at


def test_an_attempt_that_says_nothing_of_the_model_begins_no_deadline():
    policy = RetryPolicy(base_seconds=4, jitter=0, deadline_seconds=10)
    spec = agent().model_copy(update={"retry": policy})
    past = given().when(started(spec), asking(), failing("cancelled"), asking(attempt=2))

    past.when(failing("overloaded", attempt=2, at=later(8)))

    assert later(12) == past.facts[0].retry_at


def test_a_calls_deadline_counts_from_its_first_failure():
    policy = RetryPolicy(base_seconds=4, jitter=0, deadline_seconds=10)
    past = failed("look", "network", agent().model_copy(update={"tool_retry": policy}))
    past.when(SessionContinued(by="deadline", at=later(4)), running("1.0", "look", 2))

    past.when(broken("1.0", "network", 2, at=later(4))).then(ToolFailed, ModelRequested)


# A retry is counted from the failure; of one whose time nobody knows there is none.
def test_a_failure_at_no_known_time_is_not_tried_again():
    past = given().when(started(), asking(), failing("overloaded", at=None))
    past.then(failing("overloaded", at=None), SessionWaiting)

    call = given().when(*up_to_reply("look"), running("1.0", "look"))
    call.when(broken("1.0", "network", at=None)).then(ToolFailed, ModelRequested)


def test_a_steer_ends_the_wait_for_another_attempt():
    past = failed("look", "network", agent(base_seconds=10))

    past.when(said(2, lane="steer"))

    assert ["2.m"] == [effect.effect for effect in due(past.state)]
