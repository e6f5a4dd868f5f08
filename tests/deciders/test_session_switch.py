"""Another model in the middle of a session: when it is taken, and what the log says."""

import pytest

from cueline.deciders.session import Status, due
from cueline.deciders.session.current_agent import with_changes
from cueline.deciders.session.due import CallModel, CloseReservation, ReserveBudget
from cueline.deciders.session.limit_state import Bill
from cueline.events.agent import ModelChoice
from cueline.events.inbox import ModelChangeAsked, PauseAsked, ResumeAsked
from cueline.events.session import (
    AgentChanged,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    PromptPrefixChanged,
    ReservationClosed,
    SessionCompleted,
    SessionContinued,
    SessionWaiting,
    ToolReturned,
)
from cueline.testing.given import given
from tests.deciders.owed import runs
from tests.deciders.session_budget_example import asked, busy, closed, granted, reply
from tests.deciders.simulated_wait import wait_for_breaker
from tests.session_example import (
    AGENT,
    NOW,
    agent,
    asking,
    failing,
    received,
    returned,
    running,
    said,
    saying,
    started,
    tool,
    up_to_reply,
)

OTHER = ModelChoice(provider="other", model="n", parameters={"effort": "low"})
SWITCHED = PromptPrefixChanged(reason="model_switched", before="scripted m", after="other n")


def choosing(version=2, model=OTHER):
    return received(version, ModelChangeAsked(model=model))


def models(past):
    return [(e.attempt, e.fallback) for e in due(past.state) if isinstance(e, CallModel)]


def test_unread_messages_change_the_agent_that_a_caller_asks_for():
    look = tool("look").model_copy(update={"digest": "another"})
    said = [ResumeAsked(tools=(look,)), PauseAsked(), ModelChangeAsked(model=OTHER)]

    changed = with_changes(AGENT, said)

    assert ("other", "n", {"effort": "low"}) == (
        changed.provider,
        changed.model,
        changed.parameters,
    )
    assert [look] == [each for each in changed.tools if each.name == "look"]


def test_tools_in_flight_go_on_and_the_next_request_goes_to_the_other_model():
    past = given().when(*up_to_reply("look", "peek"), running("1.0", "look"))

    past.when(choosing()).then(MessageReceived, AgentChanged(model=OTHER))
    assert ["1.1"] == runs(past)
    past.when(running("1.1", "peek"), returned("1.0"))
    past.when(returned("1.1")).then(ToolReturned, SWITCHED, ModelRequested)

    assert ("other", "n", {"effort": "low"}) == (
        past.state.agent.provider,
        past.state.agent.model,
        past.state.agent.parameters,
    )
    assert ("", 0) == (past.facts[-1].prefix_digest, past.facts[-1].fallback)


def test_a_model_call_in_flight_is_finished_first():
    past = given().when(started(), asking()).when(choosing()).then(MessageReceived)

    past.when(saying("look")).then(ModelReplied, AgentChanged)

    assert AGENT.tools == past.state.agent.tools


def test_an_idle_session_takes_the_model_at_once_and_stays_idle():
    past = given().when(started(open=True), asking(), saying())

    past.when(choosing()).then(MessageReceived, AgentChanged)

    assert Status.IDLE is past.state.status
    past.when(said(3)).then(MessageReceived, SWITCHED, ModelRequested)


def test_a_call_that_waits_for_its_retry_is_made_by_the_other_model():
    past = given().when(started(), asking(), failing("overloaded"))

    past.when(choosing()).then(MessageReceived, AgentChanged, SWITCHED, ModelRequested)

    assert [(2, 0)] == models(past)


def test_a_paused_session_whose_model_gave_up_goes_on_with_the_other_model_when_resumed():
    past = given().when(started(agent(max_retries=0)), asking(), failing("context_too_long"))

    past.when(choosing()).then(MessageReceived, AgentChanged)
    assert Status.WAITING is past.state.status
    past.when(received(3, ResumeAsked())).then(MessageReceived, SWITCHED, ModelRequested)

    assert [(2, 0)] == models(past)


def test_a_breaker_of_the_model_before_holds_nothing_up():
    past = given().when(started(), wait_for_breaker("1.m", NOW, reserved=False))

    past.when(choosing()).then(MessageReceived, AgentChanged, SWITCHED, ModelRequested)

    assert [(2, 0)] == models(past)


def test_a_session_on_a_fallback_begins_with_the_chosen_model():
    past = given().when(started(agent(max_retries=0, fallbacks=1)), asking(), failing("auth"))
    past.when(asking(attempt=2), choosing()).then(MessageReceived)

    past.when(saying("look", attempt=2), running("1.0", "look"), returned("1.0"))

    before = SWITCHED.model_copy(update={"before": "scripted fallback-1"})
    past.then(ToolReturned, before, ModelRequested)
    assert (0, 1) == (past.facts[-1].fallback, len(past.state.agent.fallback))


def test_the_last_choice_counts():
    past = given().when(started(), asking(), choosing(), choosing(3, OTHER))
    past.when(choosing(4, ModelChoice(provider="scripted", model="m")))

    past.when(saying("look")).then(ModelReplied)

    assert "scripted" == past.state.agent.provider


def test_a_stopping_session_takes_no_model():
    past = given().when(started(), asking(), choosing())

    past.when(saying()).then(ModelReplied, AgentChanged, SessionCompleted)
    past.when(choosing(3)).then(MessageRefused)


def test_a_change_without_a_model_changes_nothing():
    past = given(started(), AgentChanged())

    assert "m" == past.state.agent.model


# I8: no reservation of the call that is not made stays open.


def test_a_reserved_call_is_made_before_the_model_changes():
    past = asked().when(choosing()).then(MessageReceived)

    assert [ReserveBudget("1.m", 1)] == due(past.state)
    past.when(granted(), reply("look")).then(ModelReplied, AgentChanged)


def test_a_call_without_budget_is_released_and_asked_for_again():
    past = asked().when(busy())

    past.when(choosing()).then(MessageReceived, AgentChanged, SessionContinued)
    assert [CloseReservation(Bill("1.m", 1, started=False))] == due(past.state)
    past.when(closed(outcome="released")).then(ReservationClosed, SWITCHED, ModelRequested)

    assert [ReserveBudget("1.m", 2)] == due(past.state)


def test_a_paused_session_releases_and_then_takes_the_model():
    past = asked().when(received(2, PauseAsked()), choosing(3)).then(MessageReceived)

    past.when(closed(outcome="released")).then(ReservationClosed, AgentChanged, SessionWaiting)


def test_a_failed_call_settles_before_the_other_model_is_asked():
    past = asked().when(granted(), choosing(), failing("overloaded"))

    past.then(ModelFailed, AgentChanged)
    past.when(closed()).then(ReservationClosed, PromptPrefixChanged, ModelRequested)
    assert [ReserveBudget("1.m", 2)] == due(past.state)


@pytest.mark.parametrize("first", ["model", "tools"])
def test_of_two_changes_before_a_request_the_first_is_the_reason(first):
    shout = AGENT.tools[3].model_copy(update={"digest": "another"})
    changes = [choosing, lambda version: received(version, ResumeAsked(tools=(shout,)))]
    changes = changes if first == "model" else changes[::-1]
    past = given().when(*up_to_reply("look"), running("1.0", "look"))

    past.when(*(change(2 + n) for n, change in enumerate(changes)), returned("1.0"))

    reason = "model_switched" if first == "model" else "tools_changed"
    assert (reason, "scripted m", "other n") == (
        past.facts[1].reason,
        past.facts[1].before,
        past.facts[1].after,
    )
