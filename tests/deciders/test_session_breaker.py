"""A session whose model or tool is left alone for a while (004-018, 004-019)."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import CallModel, RunTool
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.codes import Cause
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    MessageReceived,
    ModelStarted,
    SessionContinued,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.session_example import (
    AGENT,
    NOW,
    agent,
    asking,
    broken,
    later,
    received,
    returned,
    running,
    started,
    up_to_reply,
)


def held(*effects, seconds=60.0):
    return SessionWaiting(
        kind="breaker",
        cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
        deadline_at=later(seconds),
        effects=effects,
    )


def on_open(what, *, tool=None):
    """Return the example agent that does *what* while its model, or a tool, is left alone."""
    breaker = BreakerPolicy(on_open=what)
    if tool is None:
        return AGENT.model_copy(update={"breaker": breaker})
    tools = [
        t.model_copy(update={"breaker": breaker}) if t.name == tool else t for t in AGENT.tools
    ]
    return AGENT.model_copy(update={"tools": tuple(tools)})


def continued(by="deadline", seconds=60.0):
    return SessionContinued(by=by, at=later(seconds))


# I14: the deadline is a fact.
def test_a_session_waits_for_its_model_and_wakes_at_the_deadline():
    past = given().when(started(), held("1.m")).then(held("1.m"))

    assert (Status.WAITING, "breaker", later(60)) == (
        past.state.status,
        past.state.waiting.kind,
        wake_at(past.state),
    )
    assert [] == due(past.state)
    assert () == past.state.account.bills
    past.when(continued()).then(SessionContinued)
    assert [CallModel("1.m", 1)] == due(past.state)


def test_what_never_went_out_is_no_attempt():
    past = given().when(started(), held("1.m"), continued(), asking())

    past.then(ModelStarted(effect="1.m", attempt=1))
    assert 0 == past.state.turn.model.failures


def test_a_breaker_that_closed_lets_it_go_on_before_the_deadline():
    past = given().when(started(), held("1.m"), continued(by="breaker", seconds=5))

    assert [CallModel("1.m", 1)] == due(past.state)


def test_the_model_is_not_asked_meanwhile():
    given().when(started(), held("1.m"), asking()).then_nothing()


@pytest.mark.parametrize("effect", ["2.m", "1.0"])
def test_only_effects_that_could_start_are_blocked(effect):
    given().when(started(), held(effect)).then_nothing()


def test_a_wait_for_a_breaker_has_a_deadline():
    given().when(started(), held("1.m").model_copy(update={"deadline_at": None})).then_nothing()


def test_a_pause_lasts_and_the_deadline_passes_under_it():
    past = given().when(started(), held("1.m"), received(2, PauseAsked()))
    past.when(continued())

    assert ("operator", []) == (past.state.waiting.kind, due(past.state))
    past.when(received(3, ResumeAsked()))
    assert [CallModel("1.m", 1)] == due(past.state)


def test_a_resume_tries_at_once():
    past = given().when(started(), held("1.m"), received(2, ResumeAsked()))

    assert [CallModel("1.m", 1)] == due(past.state)


def test_a_session_can_be_stopped_while_it_waits():
    given().when(started(), held("1.m"), received(2, StopAsked())).then(
        MessageReceived, SessionStopped
    )


def test_the_agent_may_have_a_person_decide():
    past = given().when(started(on_open("pause")), held("1.m")).then(held("1.m"), SessionWaiting)

    assert ("operator", "breaker_open") == (
        past.state.waiting.kind,
        past.state.waiting.cause.code,
    )


def test_a_takeover_keeps_the_deadline():
    past = given().when(*up_to_reply("look", "put"), running("1.1", "put"), held("1.0"))

    past.when(SessionTakenOver(epoch=2, at=NOW))

    assert later(60) == wake_at(past.state)


def test_a_breaker_blocks_one_call_while_another_runs():
    past = given().when(*up_to_reply("look", "put"), running("1.1", "put"), held("1.0"))

    past.then(held("1.0"), SessionContinued(by="work"))
    past.when(returned("1.1")).then(ToolReturned, SessionWaiting)
    assert ("breaker", "breaker_open", later(60)) == (
        past.state.waiting.kind,
        past.state.waiting.cause.code,
        past.state.waiting.deadline_at,
    )


# I14
def test_a_moment_after_both_deadlines_of_a_call_ends_both_waits():
    unreachable = SessionWaiting(
        kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=later(30)
    )
    past = given().when(*up_to_reply("shout"), unreachable, held("1.0", seconds=60))

    past.when(continued(seconds=60))

    assert ([RunTool], None) == (owed(past), wake_at(past.state))


def test_the_earliest_deadline_is_the_waits():
    past = given().when(*up_to_reply("look", "put", spec=agent(base_seconds=5)))
    past.when(held("1.0"), running("1.1", "put"), broken("1.1", "lost"))
    past.when(running("1.1", "put", 2), broken("1.1", "lost", 2))

    past.then(
        ToolFailed,
        SessionWaiting(
            kind="breaker",
            cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
            deadline_at=later(5),
        ),
    )


# 004-019: degrade.
def test_the_model_may_be_told_to_do_without_a_tool():
    past = given().when(*up_to_reply("look", spec=on_open("fallback", tool="look")), held("1.0"))

    skipped = ToolSkipped(effect="1.0", reason="circuit_open: m keeps failing (timeout)")
    assert [held("1.0"), skipped] == past.facts[:2]
    assert [CallModel("2.m", 1)] == due(past.state)


def test_a_person_may_be_asked_about_a_tool():
    past = given().when(*up_to_reply("look", spec=on_open("pause", tool="look")), held("1.0"))

    assert "operator" == past.state.waiting.kind
    past.when(received(2, ResumeAsked()))
    assert ["1.0"] == runs(past)


def test_a_steering_message_ends_a_blocked_call():
    past = given().when(*up_to_reply("look"), held("1.0"))

    past.when(received(2, MessageSent(lane="steer", text="Leave it.")))

    assert ToolSkipped in map(type, past.facts)


def test_a_blocked_call_does_not_start():
    given().when(*up_to_reply("look"), held("1.0"), running("1.0", "look")).then_nothing()
    started_again = given().when(*up_to_reply("look"), held("1.0"), continued())
    started_again.when(running("1.0", "look")).then(ToolStarted)


def test_what_could_not_start_anyway_is_not_held_up():
    past = given().when(*up_to_reply("look"), running("1.0", "look"))

    past.when(held("1.0")).then_nothing()
    past.when(held("1.0", "1.m", "9.9")).then_nothing()


def test_a_breaker_blocks_only_named_effects_that_could_start():
    past = given().when(*up_to_reply("look", "put"), running("1.1", "put"))

    assert held("1.0") == past.when(held("1.1", "1.0", "9.9")).facts[0]


def test_a_resume_is_for_the_next_attempt_alone():
    past = given().when(started(), held("1.m"))

    assert not past.state.turn.model.early
    past.when(received(2, ResumeAsked()))
    assert past.state.turn.model.early
    past.when(held("1.m"))
    assert not past.state.turn.model.early


def test_a_call_that_a_person_resumed_is_tried_early_once():
    past = given().when(*up_to_reply("look"), held("1.0"), received(2, ResumeAsked()))

    assert past.state.call("1.0").early
    past.when(running("1.0", "look"))
    assert not past.state.call("1.0").early
