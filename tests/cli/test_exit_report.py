"""How somebody who looks at a session that rests is told to go on."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cueline.cli.exit_report import next_step
from cueline.cli.option import DEFAULT_LOG
from cueline.client.history import SessionView
from cueline.console.text import date_time
from cueline.deciders.session.state import Wait
from cueline.events.codes import Cause
from cueline.events.session import SessionWaiting
from cueline.testing.given import given
from tests.deciders.session_budget_example import asked
from tests.session_example import (
    asking,
    failing,
    later,
    question,
    started,
    up_to_reply,
)


def told(log=DEFAULT_LOG, **waits):
    cause = Cause(code="budget_exhausted", of=1, spent=1, need=1, **waits)
    spent = SessionWaiting(kind="budget", cause=cause, exhausted=True)
    return [
        line.strip()
        for line in next_step(SessionView(asked().when(spent).state), log, "cueline resume one")
    ]


@pytest.mark.parametrize(
    ("limit", "whose", "raised"),
    [
        ("max_cost", "", "1 --max-cost USD"),
        ("max_tokens", "session-default/root", "root --max-tokens N"),
        ("max_cost", "session-team/root", "team/root --max-cost USD"),
    ],
)
def test_a_session_without_room_is_told_whose_limit_to_raise(limit, whose, raised):
    why, more, resume = told(limit=limit, whose=whose)

    assert why.startswith(f"paused: not enough left: {limit} 1 ")
    assert why.endswith("; raise the limit, and it goes on")
    assert [f"cueline budget raise {raised}", "cueline resume one"] == [more, resume]


def test_the_command_that_raises_a_limit_can_be_typed_with_a_log_of_another_name():
    _, more, _ = told(Path("other.db"), limit="max_cost")

    assert "cueline budget raise 1 --max-cost USD --log other.db" == more


def test_where_the_limit_was_not_recorded_no_command_is_guessed():
    why, resume = told(limit="")

    assert why.endswith("; go on with")
    assert "cueline resume one" == resume


def asked_for(seconds, **how):
    waiting = SessionWaiting(
        kind="approval", cause=Cause(code="approval_pending"), deadline_at=later(60)
    )
    past = given(*up_to_reply("delete"), question("1.0", "1.1.0.1"), waiting)
    lines = next_step(SessionView(past.state), DEFAULT_LOG, "resume", now=later(seconds), **how)
    return [line.strip() for line in lines]


def test_a_person_has_the_time_of_the_question_not_that_of_its_reminder():
    why, *_ = asked_for(100)

    assert f"a person has to decide (until {date_time(later(300))}): approve" in why


def test_of_several_questions_the_one_that_ends_first_says_until_when():
    sooner = question("1.0", "1.1.0.1").model_copy(update={"deadline_at": later(200)})
    waiting = SessionWaiting(kind="approval", cause=Cause(code="approval_pending"))
    both = sooner, question("1.1", "1.1.1.1")
    past = given(*up_to_reply("delete", "delete"), *both, waiting)

    why, *_ = next_step(SessionView(past.state), DEFAULT_LOG, "resume", now=later(100))

    assert f"(until {date_time(later(200))})" in why


def test_nobody_is_sent_to_answer_a_question_whose_time_is_over():
    assert ["the time to decide is over; go on with", "resume"] == asked_for(301)
    assert ["the time to decide is over; it goes on by itself"] == asked_for(301, owned=True)


# C15: it is granted by whoever drives it then, who hears of a denial before.
def test_what_is_granted_by_itself_can_be_denied_until_somebody_drives_it():
    vetoed = question("1.0", "1.1.0.1").model_copy(update={"auto_at": later(10)})
    waiting = SessionWaiting(kind="approval", cause=Cause(code="approval_pending"))
    state = given(*up_to_reply("delete"), vetoed, waiting).state

    why, *ways = next_step(SessionView(state), DEFAULT_LOG, "resume", now=later(11))

    assert "it is allowed by itself, unless somebody denies it (until it goes on): approve" in why
    assert ["cueline approve 1.1.0.1", "resume"] == [way.strip() for way in ways]


def test_what_was_decided_goes_on_by_itself_where_somebody_drives_it():
    decided = {"1.1.0.1"}

    assert ["decided; go on with", "resume"] == asked_for(100, decided=decided)
    assert ["decided; it goes on by itself"] == asked_for(100, decided=decided, owned=True)


def test_a_refused_key_is_to_be_corrected_first():
    past = given().when(started(), asking(), failing("auth"))

    why, way = next_step(SessionView(past.state), DEFAULT_LOG, "cueline resume one")

    assert why.endswith("says where its key comes from; correct it, and go on with")
    assert "  cueline resume one" == way


def test_a_conversation_that_is_too_long_goes_on_as_a_fork_of_its_past():
    past = given().when(started(), asking(), failing("context_too_long"))

    why, fork = next_step(SessionView(past.state), DEFAULT_LOG, "cueline resume one")

    assert "paused: error: context_too_long: no; go on from an earlier version with" == why
    assert "  cueline fork 1 --at VERSION" == fork


@pytest.mark.parametrize("owned", [True, False])
def test_a_parent_names_the_child_it_waits_for_and_how_to_look_at_it(owned):
    cause = Cause(code="child_running", times=1, whose="session-default/one.1.0")
    state = replace(given(*up_to_reply("delete")).state, waiting=Wait("child", cause))

    why, look, *ways = next_step(SessionView(state), DEFAULT_LOG, "resume", owned=owned)

    assert why == (
        "waiting for a child session: one.1.0; it goes on when that has ended; look at it with"
    )
    assert "  cueline show one.1.0" == look
    assert ([] if owned else ["and go on with", "  resume"]) == ways
