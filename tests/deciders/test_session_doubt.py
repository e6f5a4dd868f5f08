"""Calls whose outcome nobody knows: asked about, reconciled, or told as unknown (I5)."""

import pytest

from cueline.deciders.session import due
from cueline.deciders.session.due import AskApproval, ReconcileTool
from cueline.deciders.session.failed_call import UNKNOWN_OUTCOME
from cueline.deciders.session.permission import allowing_rule
from cueline.events.agent import Rule
from cueline.events.codes import Cause
from cueline.events.inbox import PauseAsked, StopAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    ModelRequested,
    SessionContinued,
    SessionWaiting,
    ToolInDoubt,
    ToolReconciled,
)
from cueline.testing.given import given
from tests.deciders.owed import owed, runs
from tests.deciders.policy_session import policy
from tests.session_example import (
    agent,
    broken,
    decided,
    later,
    question,
    received,
    running,
    said,
    up_to_reply,
)

RUNNER = SessionWaiting(
    kind="runner", cause=Cause(code="runner_unreachable"), deadline_at=later(600)
)


def test_an_undeclared_call_that_was_lost_is_in_doubt_and_a_person_asked():
    past = given().when(*up_to_reply("shout"), running("1.0"), broken("1.0", "lost"))

    past.then(
        ToolInDoubt(
            effect="1.0", attempt=1, cause=Cause(code="tool_failed", failure="lost", message="gone")
        )
    )
    assert [AskApproval] == owed(past)


def test_a_call_in_doubt_is_told_as_unknown_where_policy_says_so():
    spec = agent(in_doubt="tell")

    past = given().when(*up_to_reply("shout", spec=spec), running("1.0"), broken("1.0", "lost"))

    past.then(ToolInDoubt, ToolReconciled, ModelRequested)
    assert (UNKNOWN_OUTCOME, "policy") == (past.facts[1].output, past.facts[1].by)


def in_doubt(name, **policy):
    spec = agent(approval="off", **policy)
    return given().when(*up_to_reply(name, spec=spec), running("1.0", name), broken("1.0", "lost"))


def asked_whether_it_happened():
    return in_doubt("shout").when(question("1.0", "1.1.0.1", "did_it_happen"))


HAPPENED = {"verdict": "granted", "resolution": "happened"}
RUN_AGAIN = {"verdict": "granted", "resolution": "run_again"}
DO_NOT_RUN = {"verdict": "denied", "resolution": "do_not_run"}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "ada confirmed that this call took effect; its output is not known."),
        ({"result": "sent as no. 8"}, "sent as no. 8"),
        ({"result": "sent", "note": "I looked"}, "sent\nada: I looked"),
    ],
)
def test_a_person_may_say_that_it_happened_and_what_it_gave(more, told):
    past = asked_whether_it_happened().when(decided(2, "1.1.0.1", **HAPPENED, **more))

    past.then(MessageReceived, ApprovalResolved, ToolReconciled, ModelRequested)
    assert "happened" == past.facts[1].resolution
    assert ("happened", told) == (past.facts[2].outcome, past.facts[2].output)


def test_a_person_may_have_it_run_again():
    past = asked_whether_it_happened().when(decided(2, "1.1.0.1", **RUN_AGAIN))

    assert "run_again" == past.facts[2].outcome
    assert ["1.0"] == runs(past)
    assert "granted by ada" == allowing_rule(past.state.call("1.0"))


# I5: once per grant.
def test_to_run_it_again_is_a_grant_for_one_more_start():
    past = asked_whether_it_happened().when(decided(2, "1.1.0.1", **RUN_AGAIN))

    past.when(running("1.0", attempt=2), broken("1.0", "lost", attempt=2))

    assert [("1.1.0.2", "did_it_happen")] == [(e.approval, e.question) for e in due(past.state)]


# I9: it holds until its deadline, like any other.
def test_leave_to_run_it_again_that_was_not_used_in_time_is_asked_for():
    past = asked_whether_it_happened().when(decided(2, "1.1.0.1", **RUN_AGAIN))
    late = ApprovalResolved(approval="1.1.0.1", verdict="superseded", by="deadline")

    past.when(late)

    assert [("1.1.0.2", "may_it_run")] == [(e.approval, e.question) for e in due(past.state)]


# C17: one person's word is not that of two.
def test_to_run_a_call_again_that_takes_two_people_is_asked_of_them():
    two = Rule(name="two", answer="ask", tools=("shout",), votes=2)
    spec = policy(approval=("off",), rules=(two,))
    past = given().when(*up_to_reply("shout", spec=spec), question("1.0", "1.1.0.1", name="shout"))
    past.when(decided(2, "1.1.0.1", "granted"), running("1.0"), broken("1.0", "lost"))
    past.when(question("1.0", "1.1.0.2", "did_it_happen", name="shout"))

    past.when(decided(3, "1.1.0.2", **RUN_AGAIN))

    assert [("1.1.0.3", "may_it_run")] == [(e.approval, e.question) for e in due(past.state)]


@pytest.mark.parametrize(("note", "told"), [("", ""), ("Leave it.", "\nada: Leave it.")])
def test_a_person_may_have_the_agent_told_that_the_outcome_is_unknown(note, told):
    past = asked_whether_it_happened().when(decided(2, "1.1.0.1", **DO_NOT_RUN, note=note))

    past.then(MessageReceived, ApprovalResolved, ToolReconciled, ModelRequested)
    assert ("unknown", "ada") == (past.facts[2].outcome, past.facts[2].by)
    assert f"{UNKNOWN_OUTCOME}{told}" == past.facts[2].output
    assert [] == runs(past)


def expired_doubt(on_expiry):
    spec = policy(approval=("off",), on_expiry=on_expiry)
    past = given().when(*up_to_reply("shout", spec=spec), running("1.0"), broken("1.0", "lost"))
    past.when(question("1.0", "1.1.0.1", "did_it_happen"))
    return past.when(ApprovalResolved(approval="1.1.0.1", verdict="expired", by="clock"))


# I14: nobody is asked the same for ever.
def test_an_unresolved_doubt_pauses_the_session_at_its_deadline():
    past = expired_doubt("pause").then(ApprovalResolved, SessionWaiting)

    assert ("approval_expired", []) == (past.state.hold.cause.code, due(past.state))


def test_an_unresolved_doubt_is_told_to_the_model_if_the_policy_continues():
    past = expired_doubt("deny_and_continue").then(ApprovalResolved, ToolReconciled, ModelRequested)

    assert ("unknown", "policy") == (past.facts[1].outcome, past.facts[1].by)


def test_a_steer_withdraws_the_question_and_tells_that_the_outcome_is_unknown():
    past = asked_whether_it_happened().when(said(2, lane="steer"))

    assert "steer" == due(past.state)[0].superseded_by
    superseded = ApprovalResolved(approval="1.1.0.1", verdict="superseded", by="steer")
    past.when(superseded).then(ApprovalResolved, ToolReconciled, ModelRequested)


@pytest.mark.parametrize("policy", ["ask", "tell"])
def test_a_tool_that_reconciles_is_asked_first(policy):
    assert [ReconcileTool] == owed(in_doubt("pay", in_doubt=policy))


@pytest.mark.parametrize("output", ["paid", ""])
def test_what_a_tool_says_happened_is_the_result(output):
    reconciled = ToolReconciled(effect="1.0", outcome="happened", by="tool", output=output)

    in_doubt("pay").when(reconciled).then(ToolReconciled, ModelRequested)


def test_what_a_tool_says_did_not_happen_runs_again():
    past = in_doubt("pay").when(ToolReconciled(effect="1.0", outcome="did_not_happen", by="tool"))

    assert ["1.0"] == runs(past)


def test_a_tool_is_asked_anew_each_time_that_its_call_is_in_doubt():
    past = in_doubt("pay").when(ToolReconciled(effect="1.0", outcome="unknown", by="tool"))
    past.when(question("1.0", "1.1.0.1", "did_it_happen", name="pay"))
    past.when(decided(2, "1.1.0.1", **RUN_AGAIN))

    past.when(running("1.0", "pay", attempt=2), broken("1.0", "lost", attempt=2))

    assert [ReconcileTool] == owed(past)


# I9: the grant was for one effect, once.
def test_a_sensitive_call_that_did_not_happen_is_asked_for_again():
    past = given().when(*up_to_reply("wire"), question("1.0", "1.1.0.1", name="wire"))
    past.when(decided(2, "1.1.0.1", "granted"), running("1.0", "wire"), broken("1.0", "lost"))

    past.when(ToolReconciled(effect="1.0", outcome="did_not_happen", by="tool"))

    assert [("1.1.0.2", "may_it_run")] == [(e.approval, e.question) for e in due(past.state)]


@pytest.mark.parametrize("output", ["", "perhaps"])
def test_a_tool_that_cannot_tell_leaves_it_to_a_person(output):
    unknown = ToolReconciled(effect="1.0", outcome="unknown", by="tool", output=output)

    past = in_doubt("pay").when(unknown).then(ToolReconciled)

    assert [AskApproval] == owed(past)


@pytest.mark.parametrize("message", [PauseAsked(), StopAsked()])
def test_a_tool_is_not_asked_in_a_session_that_rests_or_ends(message):
    assert ReconcileTool not in owed(in_doubt("pay").when(received(2, message)))


def test_nobody_is_asked_before_the_tool_was():
    in_doubt("pay").when(question("1.0", "1.1.0.1", "did_it_happen")).then_nothing()


def test_a_call_in_doubt_is_asked_about_once():
    past = asked_whether_it_happened().then(ApprovalRequested, SessionWaiting)

    past.when(question("1.0", "1.1.0.2", "did_it_happen")).then_nothing()


def test_a_tool_that_cannot_be_asked_what_happened_leaves_it_to_a_person():
    past = in_doubt("pay").when(RUNNER, SessionContinued(by="deadline", at=later(600)), RUNNER)

    past.then(ToolReconciled)
    assert [AskApproval] == owed(past)


@pytest.mark.parametrize("outcome", ["happened", "did_not_happen", "unknown"])
def test_what_is_found_out_of_a_call_that_is_not_in_doubt_counts_nothing(outcome):
    past = given().when(*up_to_reply("pay"), running("1.0", "pay"))

    past.when(ToolReconciled(effect="1.0", outcome=outcome, by="tool")).then_nothing()
