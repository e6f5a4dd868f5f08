"""Another model for when one cannot answer: who is asked, and that the log says so."""

import pytest

from cueline.deciders.session import Status, due, wake_at
from cueline.deciders.session.due import CallModel
from cueline.events.agent import Fallback
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    ModelRequested,
    PromptPrefixChanged,
    SessionContinued,
    SessionFailed,
    SessionTakenOver,
    SessionWaiting,
    ToolReturned,
)
from cueline.testing.given import given
from tests.session_example import (
    agent,
    asking,
    failing,
    forked,
    later,
    received,
    returned,
    running,
    said,
    saying,
    started,
)

B, C = Fallback(provider="scripted", model="b"), Fallback(provider="other", model="c")
AGENT = agent(max_retries=0).model_copy(update={"fallback": (B, C)})
LASTING = ["auth", "unknown", "config", "invalid_request", "context_too_long"]


def fallen(kind="overloaded", spec=AGENT):
    return given().when(started(spec), asking(), failing(kind))


def last_one_failed(kind):
    past = fallen().when(asking(attempt=2), failing("overloaded", attempt=2))
    return past.when(asking(attempt=3), failing(kind, attempt=3))


def fallbacks(past):
    return [(e.attempt, e.fallback) for e in due(past.state) if isinstance(e, CallModel)]


def test_a_failure_that_does_not_pass_is_answered_by_the_next_model():
    past = fallen().then(ModelFailed, PromptPrefixChanged, ModelRequested)

    changed = past.facts[1]
    assert ("scripted m", "scripted b") == (changed.before, changed.after)
    assert Cause(code="model_failed", failure="overloaded", message="no") == changed.cause
    assert [(2, 1)] == fallbacks(past)


def test_nothing_of_the_last_request_is_a_prefix_of_what_another_model_is_sent():
    past = fallen()

    assert ("", 1) == (past.facts[2].prefix_digest, past.facts[2].fallback)
    past.when(asking(attempt=2), saying("look", attempt=2), running("1.0", "look"))
    past.when(returned("1.0")).then(ToolReturned, ModelRequested)
    assert past.facts[1].prefix_digest


def test_a_model_is_given_up_only_after_its_retries():
    spec = AGENT.model_copy(update={"retry": RetryPolicy(max_retries=1, jitter=0)})
    past = fallen(spec=spec).then(ModelFailed)
    past.when(SessionContinued(by="deadline", at=later(1)))

    assert [(2, 0)] == fallbacks(past)
    past.when(asking(attempt=2), failing("overloaded", attempt=2))
    assert [(3, 1)] == fallbacks(past)


def test_each_model_has_its_own_retries():
    spec = AGENT.model_copy(
        update={"fallback": (B.model_copy(update={"retry": RetryPolicy.named("exact")}),)}
    )
    past = fallen(spec=spec)

    past.when(asking(attempt=2), failing("overloaded", attempt=2)).then(ModelFailed, SessionWaiting)

    assert later(2) == past.facts[0].retry_at


# What another account, key, window or dialect may mend.
@pytest.mark.parametrize("kind", LASTING)
def test_another_model_may_fare_better(kind):
    assert [(2, 1)] == fallbacks(fallen(kind))


def test_a_model_that_gives_no_answer_is_asked_once_more():
    past = given().when(started(agent(max_retries=0)), asking(), failing("no_answer"))

    assert [(2, 0)] == fallbacks(past.when(SessionContinued(by="deadline", at=later(0))))
    past.when(asking(attempt=2), failing("no_answer", attempt=2)).then(ModelFailed, SessionFailed)
    assert ("no_answer", Status.FAILED) == (past.facts[-1].kind, past.state.status)


def test_other_failures_before_do_not_count_as_no_answer():
    past = given().when(started(agent(max_retries=1, base_seconds=0)), asking())
    past.when(failing("overloaded"), SessionContinued(by="deadline", at=later(0)))
    past.when(asking(attempt=2), failing("no_answer", attempt=2))

    past.when(SessionContinued(by="deadline", at=later(0)))
    assert [(3, 0)] == fallbacks(past)


def test_after_no_answer_twice_the_next_model_is_asked():
    past = fallen("no_answer").when(SessionContinued(by="deadline", at=later(0)))
    past.when(asking(attempt=2), failing("no_answer", attempt=2))

    past.then(ModelFailed, PromptPrefixChanged, ModelRequested)
    past.when(asking(attempt=3), failing("no_answer", attempt=3))
    past.when(SessionContinued(by="deadline", at=later(0)))
    assert [(4, 1)] == fallbacks(past)


@pytest.mark.parametrize("kind", ["refused", "content_filtered"])
def test_what_was_refused_for_what_it_says_is_put_to_no_other(kind):
    fallen(kind).then(ModelFailed, SessionFailed)


@pytest.mark.parametrize("kind", ["overloaded", "auth", "unknown", "context_too_long"])
def test_after_the_last_model_a_person_is_asked(kind):
    past = last_one_failed(kind).then(ModelFailed, SessionWaiting)

    expected = Cause(code="model_failed", failure=kind, message="no")
    assert expected == past.state.hold.cause


def test_after_the_last_model_a_request_that_is_wrong_ends_the_session():
    last_one_failed("invalid_request").then(ModelFailed, SessionFailed)


def answered_by_another():
    past = fallen().when(asking(attempt=2), saying("look", attempt=2), running("1.0", "look"))
    return past.when(returned("1.0"))


def test_the_model_that_answered_stays_the_one_that_is_asked():
    assert [(1, 1)] == fallbacks(answered_by_another())


def test_what_a_user_says_gives_the_agents_own_model_another_chance():
    past = fallen().when(asking(attempt=2), saying("look", attempt=2), running("1.0", "look"))
    past.when(said(2))

    past.when(returned("1.0")).then(ToolReturned, PromptPrefixChanged, ModelRequested)

    changed = past.facts[1]
    assert ("scripted b", "scripted m", None) == (changed.before, changed.after, changed.cause)
    assert [(1, 0)] == fallbacks(past)


def test_a_resume_begins_with_the_agents_own_model():
    past = last_one_failed("overloaded").when(received(2, ResumeAsked()))

    assert [(4, 0)] == fallbacks(past)
    assert PromptPrefixChanged in map(type, past.facts)


def test_a_paused_session_asks_no_other_model():
    past = given().when(started(AGENT), asking(), received(2, PauseAsked()))

    past.when(failing("overloaded"))

    assert ([], Status.WAITING) == (fallbacks(past), past.state.status)


def test_an_attempt_that_was_lost_is_made_again_with_the_same_model():
    past = fallen().when(asking(attempt=2))

    past.when(SessionTakenOver(epoch=2, at=later(1))).then(SessionTakenOver, ModelRequested)

    assert [(3, 1)] == fallbacks(past)


def test_a_fork_may_have_fewer_models():
    past = answered_by_another()

    past.when(forked(agent(max_retries=0), version=9))

    assert [(1, 0)] == fallbacks(past)


def test_a_session_without_fallbacks_records_nothing_of_them():
    past = given().when(started(agent()), asking(), saying("look"))

    assert [ModelReplied] == [type(fact) for fact in past.facts]
    assert (0, 0) == (past.state.turn.fallback, due(past.state)[0].attempt - 1)


def kept_back(on_open, effect="1.m"):
    spec = AGENT.model_copy(update={"breaker": BreakerPolicy(on_open=on_open)})
    held = SessionWaiting(
        kind="breaker",
        cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
        deadline_at=later(60),
        effects=(effect,),
    )
    return given().when(started(spec), held)


def test_another_model_is_asked_while_a_breaker_is_open():
    past = kept_back("fallback").then(SessionWaiting, PromptPrefixChanged, ModelRequested)

    changed = past.facts[1]
    assert ("scripted m", "scripted b") == (changed.before, changed.after)
    assert "breaker_open" == changed.cause.code
    assert [(2, 1)] == fallbacks(past)


def test_when_every_models_breaker_is_open_the_last_is_waited_for():
    past = kept_back("fallback")
    for until in (70, 80):
        past.when(
            SessionWaiting(
                kind="breaker",
                cause=Cause(code="breaker_open", dependency="m", failure="timeout"),
                deadline_at=later(until),
                effects=("1.m",),
            )
        )

    assert ("breaker", later(80)) == (past.state.waiting.kind, wake_at(past.state))
    past.when(SessionContinued(by="deadline", at=later(80)))
    assert [(3, 2)] == fallbacks(past)


def test_who_waits_for_a_breaker_asks_no_other():
    assert [] == fallbacks(kept_back("wait").then(SessionWaiting))
