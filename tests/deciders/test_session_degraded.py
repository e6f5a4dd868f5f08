"""Tools that are not critical: the work goes on, and its result is partial (C5, 004-006)."""

import pytest

from cueline.deciders import prompt
from cueline.deciders.prompt import GO_ON
from cueline.deciders.session import Status, due
from cueline.events.codes import Cause
from cueline.events.inbox import StopAsked
from cueline.events.session import (
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionIdle,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
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


def failed(kind="tool_error", name="peek", spec=None):
    past = given().when(*up_to_reply(name, spec=spec or agent(max_retries=0)))
    return past.when(running("1.0", name), broken("1.0", kind))


# 004-053: a fact, not only a line of a log.
def test_a_failure_degrades_and_the_model_is_told_to_go_on():
    past = failed().then(ToolFailed, ModelRequested)

    assert past.facts[0].degraded
    assert (f"tool_error: gone\n{GO_ON}", True) == prompt.result_of(past.facts[0])


def test_the_result_is_partial():
    past = failed().when(asking(2), saying(turn=2, text="Done, but."))

    past.then(ModelReplied, SessionCompleted(result="Done, but.", partial=True, turns=2))


# 004-052 is for a workflow; an agent is told, and finds another way (C5, C9).
def test_a_critical_tool_that_fails_makes_nothing_partial():
    past = failed(name="look").then(broken("1.0", "tool_error"), ModelRequested)

    past.when(asking(2), saying(turn=2)).then(
        ModelReplied, SessionCompleted(result="Well.", turns=2)
    )


@pytest.mark.parametrize(("name", "degraded"), [("look", False), ("peek", True)])
def test_a_call_that_is_lost_for_good_degrades_where_its_tool_is_not_critical(name, degraded):
    unreachable = SessionWaiting(
        kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=later(600)
    )
    past = given().when(*up_to_reply(name, spec=agent(max_retries=0)), running("1.0", name))
    past.when(unreachable, SessionContinued(by="deadline", at=later(600)))

    past.when(unreachable).then(ToolFailed, ModelRequested)

    assert (None, degraded) == (past.facts[0].retry_at, past.facts[0].degraded)


def test_what_is_tried_again_has_not_failed_yet():
    past = failed("network", spec=agent(max_retries=1, base_seconds=10))

    assert (False, False) == (past.facts[0].degraded, past.state.partial)


@pytest.mark.parametrize("kind", ["invalid_arguments", "cancelled"])
def test_what_is_no_failing_of_the_tool_leaves_the_result_whole(kind):
    assert not failed(kind).facts[0].degraded


def test_nobody_is_asked_about_it_when_it_is_in_doubt():
    past = failed("lost", "tell").then(ToolInDoubt, ToolReconciled, ModelRequested)

    assert ("unknown", "policy", True) == (
        past.facts[1].outcome,
        past.facts[1].by,
        past.facts[1].degraded,
    )
    assert past.state.partial


def test_an_open_session_says_it_once_of_the_answer_it_is_about():
    past = given().when(started(agent(max_retries=0), open=True), asking(), saying("peek"))
    past.when(running("1.0", "peek"), broken("1.0", "tool_error"), asking(2))

    past.when(saying(turn=2)).then(ModelReplied, SessionIdle(result="Well.", partial=True, turns=2))
    past.when(said(2), asking(3), saying(turn=3))
    past.then(ModelReplied, SessionIdle(result="Well.", turns=3))


def test_one_that_returns_is_as_good_as_any():
    past = given().when(*up_to_reply("peek"), running("1.0", "peek"), returned("1.0"))

    past.when(asking(2), saying(turn=2)).then(
        ModelReplied, SessionCompleted(result="Well.", turns=2)
    )


def test_what_a_stop_cuts_off_degrades_nothing():
    past = given().when(*up_to_reply("peek"), running("1.0", "peek"), received(2, StopAsked()))

    past.when(broken("1.0", "killed"))

    assert (Status.STOPPED, False) == (past.state.status, past.state.partial)
    assert [] == due(past.state)
