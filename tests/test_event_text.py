"""Every code that an event holds has a sentence."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import get_args

import pytest

from cueline.events.agent_parts import Demands
from cueline.events.codes import Cause, CauseCode, Refusal, RefusalCode
from cueline.events.event_text import (
    RESOLUTIONS,
    cause_text,
    degraded_text,
    doubt_text,
    end_text,
    prefix_text,
    refusal_text,
    untold_text,
)
from cueline.events.session import (
    CapabilityDegraded,
    PeopleNotified,
    PromptPrefixChanged,
    SessionFailed,
    SessionStopped,
    StopCode,
    TellCode,
)
from cueline.events.start import DISCONNECTED, NO_RUNNER


def limit(name, of):
    return Cause(code="limit_reached", limit=name, of=Decimal(of))


def budget(code, name, *numbers, whose=""):
    of, spent, held, need = map(Decimal, numbers)
    return Cause(code=code, limit=name, of=of, spent=spent, held=held, need=need, whose=whose)


CAUSES = [
    (Cause(code="asked"), "on request"),
    (Cause(code="signal"), "by Ctrl-C or a signal"),
    (limit("max_turns", 1), "limit: 1 turn since the last message"),
    (limit("max_turns", 11), "limit: 11 turns since the last message"),
    (limit("max_active_seconds", "1.5"), "limit: 1.5 s of work (max_active_seconds)"),
    (limit("max_wall_seconds", "100.0"), "limit: 100 s since the start (max_wall_seconds)"),
    (Cause(code="hosts_died", times=3), "error: its host died 3 times in it"),
    (Cause(code="unexpected_error", message="KeyError: 'a'"), "error: KeyError: 'a'"),
    (
        Cause(code="rule_failed", message="KeyError: 'a' (turn.py:7)"),
        "error: a rule of cueline failed, what happened is recorded: KeyError: 'a' (turn.py:7)",
    ),
    (
        Cause(code="model_failed", failure="timeout", message="no answer"),
        "error: timeout: no answer",
    ),
    (Cause(code="tool_failed", failure="not_started", message="no"), "error: not_started: no"),
    (Cause(code="call_denied"), "User cancelled at checkpoint"),
    (Cause(code="approval_pending", approvals=("1.1.0.1", "1.1.1.1")), "1.1.0.1, 1.1.1.1"),
    (Cause(code="approval_expired", approvals=("1.1.0.1",)), "approval expired"),
    (
        budget("budget_busy", "max_cost", "1", "0.10", "0.7", "0.4", whose="session-default/root"),
        "busy: max_cost 1 USD of root, 0.1 USD is spent and 0.7 USD is held for others",
    ),
    (
        budget("budget_exhausted", "max_tokens", 9, 1, 0, 10),
        "not enough left: max_tokens 9 tokens, 1 token spent, the next call may take 10 tokens",
    ),
    (Cause(code="runner_unreachable", runner="r1"), "runner r1 cannot be reached"),
    (Cause(code="runner_unreachable"), "no runner can be reached"),
    (Cause(code="no_runner"), "there is no runner"),
    (
        Cause(code="no_slot", of=Decimal(10), times=2),
        "10 sandboxes may be started at a time, after 2 other sessions",
    ),
    (Cause(code="no_slot", of=Decimal(1)), "1 sandbox may be started at a time"),
    (
        Cause(code="sandbox_failed", message="no room on the disk"),
        "its sandbox cannot be started: no room on the disk",
    ),
    (Cause(code="scheduled"), "it starts then"),
    (Cause(code="scheduled", every_seconds=7200), "it starts then, and another one every 2 h"),
    (Cause(code="scheduled", every_seconds=5400), "it starts then, and another one every 90 m"),
    (Cause(code="scheduled", every_seconds=1.5), "it starts then, and another one every 1.5 s"),
    (
        Cause(code="queued", blueprint="crawler"),
        "no runner has claimed this run of crawler yet",
    ),
    (Cause(code="no_runner", unmet=Demands(machine="m1")), "no runner offers the machine m1"),
    (
        Cause(code="breaker_open", dependency="tool search", failure="timeout"),
        "tool search keeps failing (timeout)",
    ),
    (
        Cause(code="breaker_held", dependency="fake m", failure="rate_limited"),
        "fake m asks to be left alone (rate_limited)",
    ),
    (Cause(code="breaker_probing", dependency="fake m"), "fake m is tried by one call"),
    (Cause(code="retry_pending"), "a failed attempt is tried again"),
    (Cause(code="child_running", times=1, whose="session-default/7f3a.2.0"), "7f3a.2.0"),
    (
        Cause(code="child_running", times=3, whose="session-default/7f3a.2.0"),
        "7f3a.2.0 and 2 more",
    ),
    (Cause(code="task_working", name="build"), "build goes on there, and is asked for again"),
    (
        Cause(code="message_awaited", name="go"),
        "send it with `cueline send SESSION --name go VALUE`",
    ),
]


@pytest.mark.parametrize(("cause", "text"), CAUSES, ids=[text for _, text in CAUSES])
def test_a_cause_is_told_in_a_sentence(cause, text):
    assert text == cause_text(cause)


def test_every_cause_is_in_the_table():
    assert set(get_args(CauseCode)) == {cause.code for cause, _ in CAUSES}


ENDS = [
    (SessionFailed(kind="refused", message="I will not."), "refused: I will not."),
    (SessionFailed(kind="approval_expired", approval="1.1.0.1"), "nobody decided on 1.1.0.1"),
    (SessionFailed(kind="runner_disconnected", message=DISCONNECTED), DISCONNECTED),
    (SessionFailed(kind="no_matching_runner", message=NO_RUNNER), NO_RUNNER),
    (SessionStopped(by="ada"), "Session was manually stopped"),
    (SessionStopped(by="ada", reason="Enough."), "Enough."),
    (SessionStopped(by="ada", code="call_denied"), "User cancelled at checkpoint"),
    (
        SessionStopped(by="ada", code="call_denied", reason="too dear"),
        "User cancelled at checkpoint: too dear",
    ),
]


@pytest.mark.parametrize(("end", "text"), ENDS, ids=[text for _, text in ENDS])
def test_an_end_is_told_in_a_sentence(end, text):
    assert text == end_text(end)


def test_every_stop_is_in_the_table():
    assert set(get_args(StopCode)) == {end.code for end, _ in ENDS if end.type == "SessionStopped"}


REFUSALS = [
    (Refusal(code="session_ended", status="failed"), "the session has ended: failed"),
    (Refusal(code="session_stopping"), "the session is being stopped"),
    (Refusal(code="never_started"), "the session was never started"),
    (Refusal(code="started_before"), "the session was started before"),
    (Refusal(code="no_such_approval"), "there is no such approval"),
    (Refusal(code="already_decided", status="granted"), "already granted"),
    (Refusal(code="other_digest"), "it was given for something else than what is asked now"),
    (Refusal(code="too_late"), "it came after the deadline"),
    (
        Refusal(code="not_in_doubt"),
        "it is asked whether the call may run, not what became of it",
    ),
    (Refusal(code="no_result"), "only a call that happened has a result"),
    (Refusal(code="not_answered"), "the call asks for an answer: give one, or deny it"),
    (Refusal(code="no_person"), "one without a name is no person"),
    (Refusal(code="no_person", by="auto:mine"), "auto:mine is no person"),
    (Refusal(code="excluded", by="ann"), "ann asked for the session, and may not allow it"),
    (
        Refusal(code="not_allowed", by="ann", may_grant=("b*", "carl")),
        "ann may not allow it; b* or carl may",
    ),
    (
        Refusal(code="granted_before", by="ann", votes=2),
        "ann has allowed it already, and it takes 2 people",
    ),
    (
        Refusal(code="nothing_to_change"),
        "only a call that waits to run can be changed, or allowed for later",
    ),
    (
        Refusal(code="needs_others", votes=2),
        "it takes 2 people, so one alone can neither change nor extend it",
    ),
    (Refusal(code="no_limit_named"), "it names no limit"),
    (
        Refusal(code="no_such_limit", limit="max_cost"),
        "the session has no max_cost: a limit can be raised, not introduced",
    ),
    (
        Refusal(code="not_higher", limit="max_cost", of=Decimal("0.10")),
        "max_cost is 0.10 already: it can only be raised",
    ),
    (
        Refusal(code="not_higher", limit="max_turns", of=Decimal(60), unread=True),
        "max_turns is 60 already: it can only be raised (asked for before, and not read yet)",
    ),
    (
        Refusal(code="plan_takes_no_messages"),
        "it follows a plan, so no model reads messages",
    ),
    (
        Refusal(code="no_such_wait", by="go"),
        "no step of its plan waits for a message 'go'",
    ),
    (
        Refusal(code="procedural_agent_no_resume"),
        "procedural_agent_no_resume: it is a procedure, which nothing continues: start it again",
    ),
]


@pytest.mark.parametrize(("refusal", "text"), REFUSALS, ids=[text for _, text in REFUSALS])
def test_a_refusal_is_told_in_a_sentence(refusal, text):
    assert text == refusal_text(refusal)


def test_a_refusal_of_an_answer_says_what_can_be_answered():
    text = refusal_text(Refusal(code="not_resolved"))

    assert all(f"{each} ({then})" in text for each, then in RESOLUTIONS.items())


def test_every_refusal_is_in_the_table():
    assert set(get_args(RefusalCode)) == {"not_resolved", *(each.code for each, _ in REFUSALS)}


UNTOLD = [
    ("told", ""),
    ("call_over", "the call is over"),
    ("question_over", "the question is over"),
    ("hook_failed", "it ended with 3"),
]


@pytest.mark.parametrize(("code", "text"), UNTOLD)
def test_a_hook_that_told_nobody_says_why(code, text):
    said = "it ended with 3" if code == "hook_failed" else ""

    told = PeopleNotified(effect="1.0", hook=0, code=code, problem=said, at=datetime.now(UTC))
    assert text == untold_text(told)


def test_every_code_of_a_hook_is_in_the_table():
    assert set(get_args(TellCode)) == {code for code, _ in UNTOLD}


GONE = Cause(code="tool_failed", failure="lost", message="process 7 has ended")


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (GONE, "process 7 has ended"),
        (Cause(code="runner_unreachable", runner="r1"), "runner r1 cannot be reached"),
    ],
)
def test_a_doubt_says_how_it_is_known(cause, text):
    assert text == doubt_text(cause)


def test_another_model_is_told_with_the_reason():
    changed = PromptPrefixChanged(
        reason="fallback",
        before="fake a",
        after="fake b",
        cause=Cause(code="breaker_probing", dependency="fake a"),
    )

    assert "fake b is asked instead of fake a: fake a is tried by one call" == prefix_text(changed)
    plain = changed.model_copy(update={"cause": None})
    assert "fake b is asked instead of fake a" == prefix_text(plain)
    switched = plain.model_copy(update={"reason": "model_switched"})
    assert "fake b is asked instead of fake a, as a person chose" == prefix_text(switched)
    tools = plain.model_copy(update={"reason": "tools_changed", "after": "fake a"})
    assert "changed tools were accepted" == prefix_text(tools)


def test_a_model_that_lacks_something_is_told_with_what_happens_instead():
    lacks = CapabilityDegraded(capability="images", provider="ollama", model="gemma")

    assert "ollama gemma has no images: a text stands for each" == degraded_text(lacks)
    lacks = lacks.model_copy(update={"capability": "thinking"})
    assert "ollama gemma has no thinking: the request goes without" == degraded_text(lacks)
