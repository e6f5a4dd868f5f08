"""What a policy makes of a call that nobody was asked about."""

from decimal import Decimal

import pytest

from cueline.deciders.session import allowing_rule, command_of, due
from cueline.deciders.session.due import RunTool
from cueline.events.message import Estimate
from cueline.events.session import (
    ModelReplied,
    ModelRequested,
    ToolSkipped,
)
from cueline.testing.given import given
from tests.deciders.owed import owed
from tests.deciders.policy_session import policy, rule
from tests.session_example import (
    AGENT,
    asking,
    running,
    saying,
    started,
    up_to_reply,
)


# 000-050, 000-051, C14: which rule decided is recorded, and told.
def test_a_call_that_a_rule_denies_is_never_asked_about_and_told_to_the_model():
    spec = policy(rules=(rule("deny", "no deletes", tools=("delete",)),))

    past = given().when(*up_to_reply("delete", spec=spec))

    past.then(ModelReplied, ToolSkipped, ModelRequested)
    skipped = past.facts[1]
    assert "no deletes" == skipped.rule
    assert "no deletes" in skipped.reason


# I10: the command is what came from outside, without what the rules said of it.
def test_the_command_of_a_judged_reply_is_the_reply_as_it_came():
    said = saying("delete")

    (replied,) = given().when(started(), asking(), said).facts

    assert ["ask"] == [judged.answer for judged in replied.judged.values()]
    assert said == command_of(replied)


# I13: nor where the log was cut before it says so.
def test_a_call_that_a_rule_denies_is_due_in_no_prefix():
    spec = policy(rules=(rule("deny", tools=("look",)),))
    begun = given().when(started(spec))
    asked = [*begun.facts, *begun.when(asking()).facts]

    cut = given(*asked, begun.when(saying("look")).facts[0])

    assert [] == due(cut.state)
    cut.when(running("1.0", "look")).then_nothing()


# C15: automatic or not; by a rule or by a cap.
@pytest.mark.parametrize("automatic", [{"auto_approve": True}, {"auto_approve_after": 3}])
@pytest.mark.parametrize(
    "denied",
    [{"rules": (rule("deny"),)}, {"approval": ("cost",), "deny_from_usd": Decimal(2)}],
    ids=["rule", "cap"],
)
def test_nothing_that_is_automatic_overrides_a_denial(automatic, denied):
    tools = tuple(t.model_copy(update={"cost_usd": Decimal(2)}) for t in AGENT.tools)
    spec = policy(**automatic, **denied).model_copy(update={"tools": tools})

    given().when(*up_to_reply("delete", spec=spec)).then(ModelReplied, ToolSkipped, ModelRequested)


# 004-022, C10: below the question people are told, and the call goes on.
def test_a_call_with_a_notify_rule_runs_without_an_approval():
    tools = (AGENT.tools[0].model_copy(update={"cost_usd": Decimal("0.2")}),)
    spec = policy(approval=("cost",)).model_copy(update={"tools": tools})

    past = given().when(*up_to_reply("look", spec=spec))

    call = past.state.call("1.0")
    assert ("notify", "cost", Decimal("0.2")) == (
        call.judged.answer,
        allowing_rule(call),
        call.judged.usd,
    )
    assert [RunTool] == owed(past)


ESTIMATES = AGENT.tools[3].model_copy(update={"estimates": True})


# 004-024: by effect; what the rules decide on is in the reply (I10).
def test_each_call_is_judged_by_what_its_tool_estimated():
    spec = policy(approval=("cost",)).model_copy(update={"tools": (ESTIMATES,)})
    estimates = {"1.0": Estimate(usd=Decimal("0.75")), "1.1": Estimate(usd=Decimal("0.05"))}
    reply = saying("shout", "shout", "shout").model_copy(update={"estimates": estimates})

    past = given().when(started(spec), asking(), reply)

    assert [("ask", Decimal("0.75")), ("allow", Decimal("0.05")), ("ask", None)] == [
        (call.judged.answer, call.judged.usd) for call in past.state.turn.calls
    ]
