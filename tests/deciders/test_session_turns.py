"""Turns, lanes and limits."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.derived_events import STEERED
from cueline.deciders.session.due import CallModel
from cueline.deciders.session.state import SessionHold
from cueline.events.agent import Policy
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, ResumeAsked
from cueline.events.message import ToolCall
from cueline.events.session import (
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    ModelStarted,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionIdle,
    SessionStarted,
    SessionWaiting,
    ToolReturned,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    agent,
    asking,
    failing,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)


def test_a_session_asks_the_model_as_soon_as_it_starts():
    past = given().when(started()).then(SessionStarted, ModelRequested)

    assert [CallModel("1.m", 1)] == due(past.state)


def test_a_start_is_taken_once():
    given().when(started(), started()).then_nothing()


# C25: beside the turns, a bound on what one turn may ask for.
def test_calls_beyond_the_limit_of_a_turn_are_told_as_not_run():
    spec = agent(max_tool_calls_per_turn=2)

    past = given().when(*up_to_reply("look", "look", "delete", "nonsense", spec=spec))

    past.then(ModelReplied, ToolSkipped, ToolSkipped)
    assert ["1.2", "1.3"] == [skipped.effect for skipped in past.facts[1:]]
    assert "limits.max_tool_calls_per_turn is 2" in past.facts[1].reason
    assert "There is no tool" in past.facts[2].reason
    assert ["1.0", "1.1"] == [effect.effect for effect in due(past.state)]


def test_the_limit_of_calls_is_of_each_turn_and_ends_no_session():
    spec = agent(max_tool_calls_per_turn=1)
    past = given().when(*up_to_reply("look", "look", spec=spec), running("1.0", "look"))

    past.when(returned("1.0"), asking(2), saying("look", turn=2))

    past.then(ModelReplied)
    assert ["2.0"] == [effect.effect for effect in due(past.state)]


# 004-055
def test_an_answer_without_calls_completes_a_session_with_one_goal():
    given().when(started(), asking(), saying(text="Done.")).then(
        saying(text="Done."), SessionCompleted(result="Done.", turns=1)
    )


def test_an_answer_without_calls_makes_an_open_session_idle():
    given().when(started(open=True), asking(), saying(text="Done.")).then(
        ModelReplied, SessionIdle(result="Done.", turns=1)
    )


@pytest.mark.parametrize("is_open", [True, False])
def test_a_session_without_a_goal_waits_for_a_message(is_open):
    past = given().when(started(goal=None, open=is_open)).then(SessionStarted, SessionIdle)

    past.when(said(2)).then(MessageReceived, ModelRequested)


@pytest.mark.parametrize("lane", ["note", "steer", "followup"])
def test_a_message_of_any_lane_wakes_an_idle_session(lane):
    past = given().when(started(open=True), asking(), saying())

    past.when(said(2, lane=lane)).then(MessageReceived, ModelRequested)

    assert (2,) == past.facts[1].messages


# 004-051, 004-054: a result is recorded, and what comes next is made of what is recorded.
def test_the_results_of_a_turn_and_the_next_request_are_one_step():
    given().when(*up_to_reply("look"), running("1.0", "look"), returned("1.0")).then(
        ToolReturned, ModelRequested
    )


# 003-061, 003-064, 003-065: the inbox pushes; nothing polls.
def test_a_note_is_told_with_the_next_model_call():
    past = given().when(*up_to_reply("look"), running("1.0", "look"))

    past.when(said(2)).then(MessageReceived)
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)

    assert (2,) == past.facts[1].messages


def test_a_message_for_a_later_turn_is_told_with_that_turn():
    past = given().when(started(), received(2, MessageSent(lane="note", text="Hm.", turn=2)))

    past.when(asking(), saying("look"), running("1.0", "look"))
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)

    assert (2,) == past.facts[1].messages


# 003-062, 003-063, C49
def test_a_steer_skips_the_calls_that_were_not_started():
    past = given().when(*up_to_reply("shout", "look"), running("1.0"))

    past.when(said(2, lane="steer")).then(
        MessageReceived, ToolSkipped(effect="1.1", reason=STEERED)
    )
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)

    assert "Skipped due to queued user message." == STEERED


def test_a_steer_lets_a_model_call_finish_and_skips_what_it_asks_for():
    past = given().when(started(), asking(), said(2, lane="steer")).then(MessageReceived)

    past.when(saying("shout")).then(ModelReplied, ToolSkipped, ModelRequested)


def test_a_followup_is_told_when_the_session_would_otherwise_be_over():
    past = given().when(*up_to_reply("look"), said(2, lane="followup"), running("1.0", "look"))

    past.when(returned("1.0")).then(ToolReturned, ModelRequested)
    assert () == past.facts[1].messages
    past.when(asking(2), saying(turn=2)).then(ModelReplied, ModelRequested)
    assert (2,) == past.facts[1].messages


# D31
def test_a_message_is_read_once():
    given().when(started(), said(2), said(2)).then_nothing()


def test_a_session_at_its_limit_of_turns_waits_for_an_operator():
    past = given().when(*up_to_reply("look", spec=agent(max_turns=1)), running("1.0", "look"))

    past.when(returned("1.0")).then(ToolReturned, SessionWaiting)

    assert SessionHold(Cause(code="limit_reached", limit="max_turns", of=1)) == past.state.hold
    assert wake_at(past.state) is None


def test_a_turn_counts_once_however_often_the_model_is_asked():
    spec = agent(max_turns=2, base_seconds=1)
    past = given().when(started(spec), asking(), failing("overloaded"))
    past.when(SessionContinued(by="deadline", at=later(1)), asking(attempt=2))

    past.when(saying("look", attempt=2), running("1.0", "look"), returned("1.0"))

    past.then(ToolReturned, ModelRequested)
    assert 2 == past.state.turn.since_user


def test_turns_are_counted_anew_when_a_followup_is_told():
    past = given().when(*up_to_reply("look"), said(2, lane="followup"))
    past.when(running("1.0", "look"), returned("1.0"), asking(2), saying("look", turn=2))
    past.when(running("2.0", "look"), returned("2.0"))
    before = past.state.turn.since_user

    past.when(asking(3), saying(turn=3)).then(ModelReplied, ModelRequested)

    assert (2, 1) == (before, past.state.turn.since_user)


@pytest.mark.parametrize("lane", ["note", "steer", "followup"])
def test_a_message_lifts_the_limit_of_turns(lane):
    past = at_its_limit()

    past.when(said(2, lane=lane)).then(MessageReceived, ModelRequested)


def test_a_resume_lifts_the_limit_of_turns():
    at_its_limit().when(received(2, ResumeAsked())).then(MessageReceived, ModelRequested)


def at_its_limit():
    spec = agent(max_turns=1)
    return given().when(*up_to_reply("look", spec=spec), running("1.0", "look"), returned("1.0"))


# 003-068, C3: the effect is tried again, not the message that led to it.
def test_a_failure_that_passes_is_tried_again_and_the_message_is_told_once():
    past = given().when(started(agent(base_seconds=1)), asking(), failing("overloaded"))

    past.then(failing("overloaded").model_copy(update={"retry_at": later(1)}))
    past.when(SessionContinued(by="deadline", at=later(1))).then(SessionContinued, ModelRequested)
    assert ("1.m", 2, ()) == (
        past.facts[1].effect,
        past.facts[1].attempt,
        past.facts[1].messages,
    )


def test_a_retry_that_is_far_away_lets_the_session_rest():
    past = given().when(started(agent(base_seconds=10)), asking(), failing("overloaded"))

    past.then(ModelFailed, SessionWaiting)
    assert later(10) == past.state.waiting.deadline_at == wake_at(past.state)


def test_a_retry_waits_as_long_as_the_provider_asks():
    failure = failing("rate_limited").model_copy(update={"retry_after": 42.0})

    past = given().when(started(agent(base_seconds=1)), asking(), failure)

    assert later(42) == wake_at(past.state)


def test_a_model_that_keeps_failing_is_given_up_and_an_operator_asked():
    past = given().when(started(agent(max_retries=2, base_seconds=0)))
    for attempt in (1, 2, 3):
        past.when(asking(attempt=attempt), failing("timeout", attempt=attempt))
        past.when(SessionContinued(by="deadline", at=NOW))

    assert Status.WAITING is past.state.status
    assert past.state.hold.cause == Cause(code="model_failed", failure="timeout", message="no")


@pytest.mark.parametrize("kind", ["unauthorized", "context_too_long"])
def test_a_failure_that_a_person_can_mend_waits_for_one(kind):
    past = given().when(started(), asking(), failing(kind)).then(ModelFailed, SessionWaiting)

    past.when(received(2, ResumeAsked())).then(MessageReceived, ModelRequested)
    assert 2 == past.facts[1].attempt


# C9: one session fails; nothing else does.
@pytest.mark.parametrize("kind", ["invalid_request", "refused"])
def test_a_failure_that_nobody_can_mend_is_the_end(kind):
    given().when(started(), asking(), failing(kind)).then(
        ModelFailed, SessionFailed(kind=kind, message="no")
    )


@pytest.mark.parametrize("kind", ["lost", "cancelled"])
def test_an_attempt_that_says_nothing_of_the_model_is_made_again_at_once(kind):
    given().when(started(), asking(), failing(kind)).then(ModelFailed, ModelRequested)


def test_a_retry_at_that_the_shell_made_up_does_not_count():
    trusting = failing("unauthorized").model_copy(update={"retry_at": later(5)})

    past = given().when(started(), asking(), trusting)

    assert past.facts[0].retry_at is None


def test_a_steer_during_a_retry_is_told_with_it():
    past = given().when(started(agent(base_seconds=10)), asking(), failing("overloaded"))

    past.when(said(2, lane="steer"), SessionContinued(by="deadline", at=later(10)))

    assert (2,) == past.facts[1].messages


def test_a_model_call_starts_once():
    given().when(started(), asking(), asking()).then_nothing()


def test_a_call_of_an_unknown_tool_is_told_to_the_model():
    past = given().when(*up_to_reply("fly")).then(ModelReplied, ToolSkipped, ModelRequested)

    assert "There is no tool 'fly'" in past.facts[1].reason


def test_a_model_that_invents_a_tool_where_there_is_none_is_told_so():
    past = given().when(*up_to_reply("fly", spec=AGENT.model_copy(update={"tools": ()})))

    assert "There is no tool 'fly'; the tools are: none." == past.facts[1].reason


def test_a_call_whose_arguments_are_no_object_is_told_to_the_model():
    call = ToolCall(id="c", name="look", malformed="[1")
    past = given().when(started(), asking(), saying().model_copy(update={"calls": (call,)}))

    past.then(ModelReplied, ToolSkipped, ModelRequested)
    assert "The arguments were not a JSON object; nothing was run." == past.facts[1].reason


def test_policies_are_those_of_the_recorded_agent():
    assert Policy() == given().when(started()).state.agent.policy
    given().when(started(), asking()).then(ModelStarted)
