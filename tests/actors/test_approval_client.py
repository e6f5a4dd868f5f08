"""Asking a person, through the gate, once (I9)."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from cueline.events.agent import Hook, Rule
from cueline.events.event_text import rationale_text
from cueline.events.inbox import DecisionGiven, MessageSent, StopAsked
from cueline.events.session import ApprovalResolved, MessageRefused, SessionWaiting, ToolStarted
from cueline.testing.fakes import asks_for, says, tool_spec
from tests.actors.asked import DEPLOY, GATE, answer, asked
from tests.actors.session_harness import SESSION, SessionHarness, Valve


async def test_a_sensitive_call_waits_for_a_person_at_rest():
    # 000-023, 000-024, 002-031, 003-024, I12
    scene = await asked()

    assert [] == await scene.first.host.active()
    assert "approval" == (await scene.last(SessionWaiting)).kind
    assert [] == scene.executor.starts


async def test_a_grant_lets_exactly_this_call_run_and_is_named():
    # 000-025, 000-054
    scene = await asked()

    await scene.decide("grant", by="ann")

    assert "granted by ann" == (await scene.last(ToolStarted)).rule
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_denial_is_told_to_the_model():
    # 000-055, 003-023
    scene = await asked()

    await scene.decide("deny")

    assert [] == scene.executor.starts
    assert "rejected by human operator" in await scene.told()


@pytest.mark.parametrize(
    ("verdict", "told"),
    [("grant", ["ann allowed the call of deploy (Mind the gap)"]), ("deny", [])],
)
async def test_a_note_goes_with_a_grant_and_into_the_result_of_what_was_denied(verdict, told):
    scene = await asked()

    await answer(scene, verdict, note="Mind the gap")

    messages = [json.loads(each) for each in await scene.outside.transcript(SESSION)]
    notes = [each["text"] for each in messages[1:] if each["role"] == "user"]
    assert told == notes
    assert 1 == json.dumps(messages).count("Mind the gap")


# C17: also of a grant that is not the last that it takes.
async def test_a_note_goes_with_the_grant_of_each_of_several_people():
    two = Rule(name="two", answer="ask", tools=("deploy",), votes=2)
    scene = await asked(rules=(two,))

    await answer(scene, by="ann", note="Mind the gap")
    await answer(scene, by="bob", note="and the step")

    messages = [json.loads(each) for each in await scene.outside.transcript(SESSION)]
    assert [
        "ann allowed the call of deploy (Mind the gap)",
        "bob allowed the call of deploy (and the step)",
    ] == [each["text"] for each in messages[1:] if each["role"] == "user"]


async def test_an_automatic_grant_is_recorded_as_such():
    # 000-027, 004-035
    scene = SessionHarness([DEPLOY, says("done")], policy={"auto_approve": True})

    await scene.begin()

    assert "auto:agent tester" == (await scene.last(ApprovalResolved)).by
    assert "ApprovalGranted" in await scene.outside.types(GATE)


async def test_a_question_says_why_it_is_asked_and_what_it_costs():
    # 000-025, 004-022, 004-024, 004-031, 004-032: the estimate is recorded.
    dear = tool_spec("deploy", sensitive=True).model_copy(update={"cost_usd": Decimal("0.75")})
    scene = SessionHarness(
        [DEPLOY, says("done")], tools=(dear,), policy={"approval": ["sensitive", "cost"]}
    )
    await scene.begin()

    opened = (await scene.outside.facts(GATE))[0]

    assert ("sensitive, cost", Decimal("0.75")) == (opened.rule, opened.usd)
    assert rationale_text(opened).endswith(
        "by the rule sensitive, cost, and is estimated to cost $0.75."
    )
    await scene.decide()
    assert Decimal("0.75") == (await scene.last(ToolStarted)).usd


@pytest.mark.parametrize(
    "approval", ["other.1.0.1", "s.1.0", "s.1.0.1.0", "Not A Name", "s.1.0.x", ""]
)
async def test_a_decision_on_something_else_is_refused_and_does_no_harm(approval):
    # C18
    scene = await asked()

    await scene.say(DecisionGiven(approval=approval, digest="?", verdict="grant", by="eve"))

    assert "no_such_approval" == (await scene.last(MessageRefused)).refusal.code
    assert [] == scene.first.troubles


async def test_a_decision_decides_nothing_in_another_session_than_it_was_sent_to():
    # C18, I9
    scene = await asked()
    other = await scene.outside.start("t", scene.agent)
    await scene.clock.settle()
    (call,) = (await scene.outside.state(other)).open_calls
    theirs = call.approval

    await scene.say(
        DecisionGiven(approval=theirs.id, digest=theirs.digest, verdict="grant", by="eve")
    )

    assert "no_such_approval" == (await scene.last(MessageRefused)).refusal.code
    assert 1 == (await scene.outside.store.head("approval-default/t.1.0.1")).version
    assert [] == scene.executor.starts


async def test_a_decision_on_what_was_not_shown_is_refused():
    # C18, I9
    scene = await asked()

    await scene.say(DecisionGiven(approval="s.1.0.1", digest="?", verdict="grant", by="eve"))

    assert [] == scene.executor.starts
    assert "other_digest" == (await scene.last(MessageRefused)).refusal.code


@pytest.mark.parametrize(
    ("message", "by"),
    [(StopAsked(), "stop"), (MessageSent(lane="steer", text="No, something else."), "steer")],
)
async def test_whatever_ends_the_need_supersedes_the_question(message, by):
    scene = await asked()

    await scene.say(message)

    assert "ApprovalSuperseded" == (await scene.outside.types(GATE))[-1]
    types = await scene.types()
    assert types.index("ApprovalResolved") < len(types) - 1
    assert by == (await scene.last(ApprovalResolved)).by
    assert types[-1] in {"SessionStopped", "SessionCompleted"}


async def test_a_stop_supersedes_every_question():
    three = asks_for(("deploy", {"n": 1}), ("deploy", {"n": 2}), ("deploy", {"n": 3}))
    scene = SessionHarness([three, says("done")])
    await scene.begin()

    await scene.say(StopAsked())

    gates = [f"approval-default/s.1.{index}.1" for index in range(3)]
    assert ["ApprovalSuperseded"] * 3 == [(await scene.outside.types(g))[-1] for g in gates]
    assert "SessionStopped" == (await scene.types())[-1]
    assert [] == scene.executor.starts


async def test_who_is_asked_about_a_doubt_is_told_what_is_known():
    # I5: how it is known that the runner is gone, and which attempt it had.
    scene = SessionHarness([asks_for(("pay", {})), says("done")], act=Valve())
    first = await scene.begin()
    await first.kill()

    await scene.world()

    opened = (await scene.outside.facts(GATE))[0]
    assert ("in_doubt", "did_it_happen") == (opened.rule, opened.question)
    assert f"Attempt 1 was given to runner {first.name}, which was gone" in rationale_text(opened)
    assert f"process {first.name} has ended" in rationale_text(opened)


async def test_who_hears_of_a_doubt_by_a_hook_is_told_what_the_question_says():
    heard = []

    async def tell(_, __, news):
        heard.append(json.loads(news))

    two = Rule(name="two", answer="ask", tools=("pay",), votes=2)
    hook = Hook(on="asked", command=("true",))
    scene = SessionHarness(
        [asks_for(("pay", {}))], policy={"rules": (two,), "hooks": (hook,)}, act=Valve()
    )
    scene.outside = replace(scene.outside, tell=tell)
    first = await scene.begin()
    await answer(scene, by="ann")
    await answer(scene, by="bob")
    await first.kill()

    await scene.world()

    opened = (await scene.outside.facts("approval-default/s.1.0.2"))[0]
    _, told = heard
    assert ("did_it_happen", "in_doubt", 1) == (
        told["question"],
        told["rule"],
        told["votes_needed"],
    )
    assert rationale_text(opened) == told["why"]
