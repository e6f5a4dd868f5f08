"""Turns and time: people are told at 0.8, the agent at 0.9, and at 1.0 nothing new starts."""

import json

import pytest

from cueline.deciders.prompt import Prompt
from cueline.deciders.session import Status, due, wake_at
from cueline.events.codes import Cause
from cueline.events.inbox import ResumeAsked
from cueline.events.session import (
    LimitWarned,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    SessionCompleted,
    SessionContinued,
    SessionForked,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.session_at_work import turns, working
from tests.session_example import (
    agent,
    asking,
    broken,
    failing,
    forked,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
    up_to_reply,
)

WRAP_UP = "You are approaching the time budget. Wrap up current work."


def texts(past):
    prompt = Prompt()
    for fact in past:
        prompt.add(fact)
    return [json.loads(message).get("text") for message in prompt.messages]


# C21: the ladder. D12, D32: once.
def test_people_are_told_once_at_four_fifths_of_the_time():
    past = working(80).then(
        ToolReturned,
        LimitWarned(limit="max_active_seconds", share=0.8, used=80, of=100),
        ModelRequested,
    )

    past.when(asking(2), saying("look", turn=2, seconds=1)).then(ModelReplied)
    past.when(running("2.0", "look"), returned("2.0")).then(ToolReturned, ModelRequested)


# 003-028, D32, C49: as a note, with these words, once; nothing is skipped for it.
def test_the_agent_is_told_once_at_nine_tenths_of_the_time():
    past = working(85).when(asking(2), saying("shout", turn=2, seconds=5))
    past.when(running("2.0"), returned("2.0"))

    past.then(
        ToolReturned,
        LimitWarned(limit="max_active_seconds", share=0.9, used=90, of=100, note=WRAP_UP),
        ModelRequested,
    )
    assert () == past.state.limit_state.notes
    past.when(asking(3), saying("look", turn=3, seconds=1), running("3.0", "look"))
    past.when(returned("3.0")).then(ToolReturned, ModelRequested)


def test_passing_two_warning_levels_at_once_records_both():
    working(95).then(ToolReturned, LimitWarned, LimitWarned, ModelRequested)


def test_the_note_is_the_last_of_what_the_next_model_call_is_told():
    spec = agent(max_active_seconds=10)
    commands = [*up_to_reply("look", spec=spec), running("1.0", "look"), said(2, "And?")]
    facts = []
    past = given()
    for command in [*commands, returned("1.0", seconds=9)]:
        facts += past.when(command).facts

    assert ["Tidy up.", None, "done", "And?", WRAP_UP] == texts(facts)
    assert past.facts[-1].digest == past.state.prompt_digests.digest


# 000-020, C24: stopped before the call, not failed, and it can go on.
def test_a_session_whose_time_is_used_up_is_held_before_the_next_call():
    past = working(100).then(
        ToolReturned,
        SessionWaiting(
            kind="operator",
            cause=Cause(code="limit_reached", limit="max_active_seconds", of=100),
        ),
    )

    assert Status.WAITING is past.state.status
    assert [] == due(past.state)
    assert wake_at(past.state) is None


@pytest.mark.parametrize("message", [ResumeAsked(), said(2).message])
def test_neither_a_resume_nor_a_message_gives_more_time(message):
    past = working(100)

    past.when(received(2, message)).then(MessageReceived, SessionWaiting)


def test_an_answer_that_uses_up_the_time_still_ends_the_session():
    spec = agent(max_active_seconds=10)

    given().when(started(spec), asking(), saying(seconds=99)).then(ModelReplied, SessionCompleted)


# 003-027: a fold of durations; C24: model calls and tool calls, also those that failed.
def test_active_time_is_what_calls_took_each_counted():
    past = given().when(
        started(), asking(), failing("rate_limited").model_copy(update={"seconds": 1})
    )
    past.when(SessionContinued(by="deadline", at=later(9)))
    past.when(asking(attempt=2), saying("look", "look", "shout", attempt=2, seconds=2))
    past.when(running("1.0", "look"), running("1.1", "look"))
    past.when(returned("1.0", seconds=4))
    past.when(broken("1.1", "tool_error").model_copy(update={"seconds": 8})).then(ToolFailed)
    past.when(running("1.2"), returned("1.2", seconds=16))

    assert 31 == past.state.turn.active_seconds


def test_a_retry_is_held_too_when_the_time_is_used_up():
    spec = agent(max_active_seconds=1, base_seconds=0)
    failed = failing("rate_limited").model_copy(update={"seconds": 1})

    past = given().when(started(spec), asking(), failed).then(ModelFailed)
    past.when(SessionContinued(by="deadline", at=later(0)))

    past.then(SessionContinued, SessionWaiting)


def test_a_fork_begins_with_all_its_time():
    past = working(100)

    past.when(forked(past.state.agent, "Again.", version=9)).then(SessionForked, ModelRequested)


# 003-010: four hours unless the agent says otherwise; 003-011: as in these tests.
def test_a_session_may_work_for_four_hours():
    past = given().when(*up_to_reply("look"), running("1.0", "look"))

    past.when(returned("1.0", seconds=4 * 3600)).then(ToolReturned, SessionWaiting)


def test_turns_have_the_same_ladder():
    past = given().when(*turns(8, agent(max_turns=10)))
    past.then(
        ToolReturned, LimitWarned(limit="max_turns", share=0.8, used=8, of=10), ModelRequested
    )

    past.when(asking(9), saying("look", turn=9), running("9.0", "look"), returned("9.0"))
    past.then(ToolReturned, LimitWarned, ModelRequested)
    assert "turn budget" in past.facts[1].note
    past.when(asking(10), saying("look", turn=10), running("10.0", "look"), returned("10.0"))
    past.then(
        ToolReturned,
        SessionWaiting(
            kind="operator", cause=Cause(code="limit_reached", limit="max_turns", of=10)
        ),
    )


def test_turns_are_counted_and_warned_of_anew_after_a_message():
    past = (
        given().when(*turns(10, agent(max_turns=10)), said(2)).then(MessageReceived, ModelRequested)
    )

    warnings = []
    for turn in range(11, 20):
        past.when(asking(turn), saying("look", turn=turn), running(f"{turn}.0", "look"))
        past.when(returned(f"{turn}.0"))
        warnings += [fact.share for fact in past.facts if isinstance(fact, LimitWarned)]

    assert [0.8, 0.9] == warnings


def test_a_message_that_is_told_along_with_results_begins_the_count_of_turns_anew():
    past = given().when(*turns(2, agent(max_turns=3)), asking(3), saying("look", turn=3))
    past.when(running("3.0", "look"), said(2), returned("3.0"))

    past.when(asking(4), saying("look", turn=4), running("4.0", "look"), returned("4.0"))

    assert (2, ModelRequested) == (past.state.turn.since_user, type(past.facts[-1]))


def test_an_attempt_more_is_no_turn_more():
    past = given().when(started(agent(max_turns=1)), asking(), failing("overloaded"))

    past.when(SessionContinued(by="deadline", at=later(3600)))

    assert "1.m" == past.facts[-1].effect
    assert 2 == past.facts[-1].attempt
