"""What a grant makes of a call: as it was edited, and for the rest of the session (I9, C18)."""

from decimal import Decimal

import pytest

from cueline.deciders.prompt import Prompt, user_message
from cueline.deciders.session import allowing_rule, command_of, due, order_digest
from cueline.deciders.session.due import AskApproval
from cueline.events.inbox import DecisionGiven
from cueline.events.session import (
    ApprovalResolved,
    GateAnswer,
    MessageReceived,
    ModelRequested,
    SessionContinued,
)
from cueline.testing.given import STREAM, given
from tests.deciders.owed import owed
from tests.deciders.policy_session import ASKED, asked, policy, resolved, rule
from tests.session_example import (
    AGENT,
    asking,
    later,
    received,
    returned,
    running,
    saying,
    up_to_reply,
)

EDIT = {"path": "b"}


def digest(arguments, effect="1.0", name="delete"):
    return order_digest(
        session=STREAM, effect=effect, tool=name, tool_digest=name, arguments=arguments,
        workspace=None,
    )  # fmt: skip


def granting(version=2, approval="1.1.0.1", **answer):
    given_ = DecisionGiven(approval=approval, digest="d", verdict="grant", by="ada")
    told = GateAnswer(approval=approval, verdict="granted", by="ada", **answer)
    return received(version, given_, told)


# I9, C18: a new digest; what was asked for does not run any more.
def test_an_edited_call_runs_as_it_was_edited():
    past = asked().when(granting(edit=EDIT, digest=digest(EDIT)))

    past.then(MessageReceived, ApprovalResolved, SessionContinued(by="work"))
    assert EDIT == past.facts[1].edit
    assert [digest(EDIT)] == [effect.digest for effect in due(past.state)]
    assert "granted by ada" == allowing_rule(past.state.call("1.0"))


# I9, I14
@pytest.mark.parametrize("more", [{}, {"edit": EDIT, "digest": digest(EDIT)}], ids=["as", "edited"])
def test_a_grant_that_was_read_late_counts_for_a_while_from_then_on(more):
    past = asked().when(granting(valid_until=later(900), **more))

    assert later(900) == past.facts[1].valid_until
    assert [later(900)] == [effect.valid_until for effect in due(past.state)]


# I10
def test_the_command_of_a_judged_edit_is_the_answer_as_it_came():
    past, edited = asked(), resolved("granted", edit=EDIT, digest=digest(EDIT))
    past.when(edited)

    resolved_ = past.facts[0]

    assert ("ask", digest(EDIT)) == (resolved_.judged.answer, resolved_.judged.digest)
    assert edited == command_of(resolved_)


def test_an_edit_whose_digest_is_of_something_else_is_asked_again():
    past = asked().when(granting(edit=EDIT, digest=digest({})))

    assert [("1.1.0.2", digest(EDIT))] == [(e.approval, e.digest) for e in due(past.state)]


# C15: an edit is judged like any call.
def test_an_edit_that_a_rule_denies_does_not_run():
    past = asked(rules=(rule("deny", "secrets", paths=("secrets/**",)),))
    secret = {"path": "secrets/key"}

    past.when(granting(edit=secret, digest=digest(secret)))

    assert "secrets" == past.facts[2].rule


# I8, C15: as its tool estimates it now.
def test_an_edit_that_costs_too_much_does_not_run():
    tools = tuple(tool.model_copy(update={"estimates": True}) for tool in AGENT.tools)
    rules = (rule("ask", tools=("delete",)), rule("deny", "dear", usd_from=5))
    spec = policy(approval=("off",), rules=rules).model_copy(update={"tools": tools})
    past = given().when(*up_to_reply("delete", spec=spec), ASKED)

    past.when(granting(edit=EDIT, digest=digest(EDIT), usd=Decimal(9)))

    assert "dear" == past.facts[2].rule


def test_an_edit_that_others_would_have_to_allow_is_asked_again():
    past = asked(rules=(rule("ask", "books", paths=("books/**",), votes=2),))
    book = {"path": "books/2026"}

    past.when(granting(edit=book, digest=digest(book)))

    assert [AskApproval] == owed(past)
    assert 2 == past.state.call("1.0").judged.votes


def test_the_tool_gets_the_arguments_that_were_granted():
    prompt = Prompt()
    for fact in [*up_to_reply("delete"), ASKED, resolved("granted", edit=EDIT)]:
        prompt.add(fact)

    assert EDIT == prompt.calls["1.0"].arguments


# A note to the agent with a grant.
def test_what_goes_with_a_grant_is_told_with_the_next_request():
    past = asked().when(granting(told="ada allowed it (once)"))
    past.when(running("1.0", "delete"), returned("1.0"))

    past.then(type(past.facts[0]), ModelRequested)
    assert (2,) == past.facts[1].messages


def test_the_prompt_has_what_goes_with_a_grant():
    prompt = Prompt()
    for fact in [*up_to_reply("delete"), ASKED, granting(told="ada allowed it (once)")]:
        prompt.add(fact)

    assert [user_message("ada allowed it (once)")] == prompt._mail[2]


# Sticky: a fact that the rules read.
def test_what_was_allowed_for_the_rest_of_the_session_is_not_asked_again():
    spec = policy()
    past = given().when(*up_to_reply("delete", spec=spec), ASKED)
    calm = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    past.when(granting(always=(calm,)), running("1.0", "delete"), returned("1.0"))

    past.when(asking(2), saying("delete", "burn", turn=2))

    first, other = past.state.turn.calls
    assert "always allowed by ada" == allowing_rule(first)
    assert (False, True) == (first.gated, other.gated)


# C17
def test_who_may_allow_a_call_may_allow_it_for_the_rest_of_the_session():
    spec = policy(rules=(rule("ask", tools=("delete",), may_grant=("ada",)),))
    past = given().when(*up_to_reply("delete", spec=spec), ASKED)
    calm = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    past.when(granting(always=(calm,)), running("1.0", "delete"), returned("1.0"))

    past.when(asking(2), saying("delete", turn=2))

    assert "always allowed by ada" == allowing_rule(past.state.call("2.0"))
