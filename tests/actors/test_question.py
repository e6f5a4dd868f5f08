"""Asking a person: through the gate, once, until a deadline (I9, I14)."""

import asyncio
from decimal import Decimal

import pytest

from cueline.actors.approval_gate import ApprovalGate, ApprovalName
from cueline.deciders.approval import AUTO_APPROVER, Vote
from cueline.deciders.policy import exactly
from cueline.events.inbox import DecisionGiven, MessageSent, ResumeAsked, StopAsked
from cueline.events.message import Estimate
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageRefused,
    SessionWaiting,
    ToolSkipped,
    ToolStarted,
)
from cueline.stores.waiting import take_turns
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says, tool_spec
from tests.actors.scene import SESSION, Interrupted, Scene, Valve

DEPLOY = asks_for(("deploy", {}))
HOUR = 3600.0
VERDICTS = {"ApprovalGranted", "ApprovalDenied", "ApprovalExpired", "ApprovalSuperseded"}
GATE = "approval-default/s.1.0.1"


async def asked(**policy):
    orders = []

    async def take(order):
        orders.append(order)
        return "fine"

    scene = Scene([DEPLOY, says("done")], policy={"approval_seconds": HOUR, **policy}, act=take)
    scene.orders = orders
    scene.first = await scene.begin()
    return scene


async def wake(scene):
    world = await scene.world()
    await scene.clock.settle()
    return world


async def test_a_sensitive_call_waits_for_a_person_at_rest():
    # 000-023, 000-024, 003-024, I12
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


async def test_an_automatic_grant_is_recorded_as_such():
    # 000-027, 004-035
    scene = Scene([DEPLOY, says("done")], policy={"auto_approve": True})

    await scene.begin()

    assert AUTO_APPROVER == (await scene.last(ApprovalResolved)).by
    assert "ApprovalGranted" in await scene.outside.types(GATE)


async def test_what_nobody_decided_expires_and_waits_for_an_operator():
    # 000-026, 000-056
    scene = await asked()
    await scene.clock.advance(HOUR)

    await wake(scene)

    assert "ApprovalExpired" == (await scene.outside.types(GATE))[-1]
    assert "approval expired" in (await scene.last(SessionWaiting)).why
    await scene.say(ResumeAsked())
    assert "approval timeout" in await scene.told()


async def test_the_inbox_is_read_to_its_end_before_an_approval_expires():
    # I14: a decision counts from when the log recorded it, not from when it is read.
    scene = await asked()
    await scene.clock.advance(HOUR - 1)
    await scene.first.kill()
    await scene.decide("deny")
    await scene.clock.advance(10)

    await wake(scene)

    assert "denied" == (await scene.last(ApprovalResolved)).verdict


async def test_a_live_session_reads_its_inbox_before_an_approval_expires():
    valve = Valve()
    scene = Scene(
        [asks_for(("read", {}), ("deploy", {})), says("done")],
        policy={"approval_seconds": HOUR},
        act=valve,
    )
    world = await scene.begin()
    world._following.cancel()
    await scene.clock.advance(HOUR - 1)
    await scene.decide("deny")

    await scene.clock.advance(2)

    assert "denied" == (await scene.last(ApprovalResolved)).verdict


async def test_a_decision_that_came_after_the_deadline_is_refused():
    scene = await asked()
    await scene.first.kill()
    await scene.clock.advance(HOUR + 1)
    await scene.decide("grant")

    await wake(scene)

    assert "it came after the deadline" == (await scene.last(MessageRefused)).reason
    assert [] == scene.executor.starts


async def test_a_grant_that_is_too_old_when_the_call_could_run_is_asked_again():
    # I9
    scene = await asked()
    await scene.first.kill()
    await scene.decide("grant")
    await scene.clock.advance(HOUR + 1)

    await wake(scene)

    assert [] == scene.executor.starts
    assert "s.1.0.2" == (await scene.last(ApprovalRequested)).approval


@pytest.mark.parametrize(
    "approval", ["other.1.0.1", "s.1.0", "s.1.0.1.0", "Not A Name", "s.1.0.x", ""]
)
async def test_a_decision_on_something_else_is_refused_and_does_no_harm(approval):
    # C18
    scene = await asked()

    await scene.say(DecisionGiven(approval=approval, digest="?", verdict="grant", by="eve"))

    assert "there is no such approval" in (await scene.last(MessageRefused)).reason
    assert [] == scene.first.troubles


async def test_a_decision_on_what_was_not_shown_is_refused():
    # C18, I9
    scene = await asked()

    await scene.say(DecisionGiven(approval="s.1.0.1", digest="?", verdict="grant", by="eve"))

    assert [] == scene.executor.starts
    assert "something else" in (await scene.last(MessageRefused)).reason


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


async def test_an_answer_that_is_quicker_than_the_question_is_recorded_after_it():
    # 003-018
    scene = Scene([DEPLOY, says("done")])

    async def decide():
        opened = (await scene.outside.facts(GATE))[0]
        decision = DecisionGiven(
            approval="s.1.0.1", digest=opened.digest, verdict="grant", by="ann"
        )
        await scene.outside.say(SESSION, decision)
        for _ in range(20):
            await scene.outside.store.put_blob(b"")  # the gate is slow to answer

    await scene.begin(Interrupted({"after ApprovalOpened": decide}))

    types = await scene.types()
    assert types.index("ApprovalRequested") < types.index("MessageReceived")
    assert "SessionCompleted" == types[-1]


async def answer(scene, verdict="grant", by="ann", **more):
    """Decide on the open question, with more than a word."""
    (call,) = [call for call in (await scene.state()).open_calls if call.asking]
    asked_ = call.approval
    await scene.say(
        DecisionGiven(approval=asked_.id, digest=asked_.digest, verdict=verdict, by=by, **more)
    )


async def test_an_edited_call_runs_as_it_was_edited_and_both_digests_are_recorded():
    # 003-022, I9, C18: what is granted is data of the grant.
    scene = await asked()

    await answer(scene, edit={"to": "staging"}, note="not yet")

    (order,) = scene.orders
    resolved = await scene.last(ApprovalResolved)
    opened = (await scene.outside.facts(GATE))[0]
    assert {"to": "staging"} == order.arguments == resolved.edit
    assert order.digest == resolved.digest != opened.digest
    prompt = b"".join(await scene.outside.transcript(SESSION)).decode()
    assert "ann allowed the call of deploy with other arguments" in prompt
    assert "not yet" in prompt


async def test_a_session_that_is_taken_over_runs_the_edited_call():
    # I4: the edit is a fact.
    scene = await asked()
    await scene.first.kill()
    await answer(scene, edit={"to": "staging"})

    await wake(scene)

    assert [{"to": "staging"}] == [order.arguments for order in scene.orders]


async def test_it_takes_as_many_people_as_the_rule_says():
    rule = {"name": "two", "answer": "ask", "tools": ["deploy"], "votes": 2}
    scene = await asked(rules=[rule])

    await answer(scene, by="ann")
    await answer(scene, by="ann")

    assert [] == scene.executor.starts
    assert "ann has allowed it already" in (await scene.last(MessageRefused)).reason
    await answer(scene, by="bob")
    assert "granted by ann, bob" == (await scene.last(ToolStarted)).rule


async def test_whoever_asked_for_the_session_may_be_excluded():
    # C17
    rule = {"name": "four eyes", "answer": "ask", "tools": ["deploy"], "exclude_requester": True}
    scene = Scene([DEPLOY, says("done")], policy={"rules": [rule]})
    await scene.begin(asked_by="ann")

    await answer(scene, by="ann")

    assert "asked for the session" in (await scene.last(MessageRefused)).reason
    await answer(scene, by="bob")
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_what_was_allowed_for_the_rest_of_the_session_is_not_asked_again():
    scene = Scene([DEPLOY, DEPLOY, says("done")])
    await scene.begin()

    await answer(scene, always=(exactly({}),))

    assert "always allowed by ann" == (await scene.last(ToolStarted)).rule
    assert 1 == (await scene.count())["ApprovalRequested"]


async def test_a_question_says_why_it_is_asked_and_what_it_costs():
    # 000-025, 004-022, 004-024, 004-031, 004-032: the estimate is recorded.
    dear = tool_spec("deploy", sensitive=True).model_copy(update={"cost_usd": Decimal("0.75")})
    scene = Scene([DEPLOY, says("done")], tools=(dear,), policy={"approval": ["sensitive", "cost"]})
    await scene.begin()

    opened = (await scene.outside.facts(GATE))[0]

    assert ("sensitive, cost", Decimal("0.75")) == (opened.rule, opened.usd)
    assert "by the rule sensitive, cost, and is estimated to cost $0.75" in opened.rationale
    await scene.decide()
    assert Decimal("0.75") == (await scene.last(ToolStarted)).usd


def estimating(known, **policy):
    """Return a scene whose tool estimates each call: *known*, by where it deploys to."""
    dear = tool_spec("deploy").model_copy(update={"estimates": True})
    scene = Scene([DEPLOY, says("done")], tools=(dear,), policy={"approval": ["cost"], **policy})
    scene.estimated = []

    async def estimate(_, arguments):
        scene.estimated.append(arguments)
        return known[arguments.get("to")]

    scene.outside.estimate = estimate
    return scene


DEAR = Estimate(usd=Decimal("0.75"))


async def test_an_estimate_is_recorded_with_the_reply_and_never_made_again():
    # 004-009, 004-024, I10
    scene = estimating({None: DEAR})
    first = await scene.begin()
    await first.kill()

    await wake(scene)
    await scene.decide()

    assert {"1.0": DEAR} == (await scene.outside.facts(SESSION))[3].estimates
    assert 1 == len(scene.estimated)
    assert Decimal("0.75") == (await scene.last(ToolStarted)).usd


async def test_who_is_asked_about_an_unknown_cost_is_told_why():
    scene = estimating({None: Estimate(problem="KeyError: list")})
    await scene.begin()

    opened = (await scene.outside.facts(GATE))[0]

    assert "and nobody knows what it will cost: KeyError: list" in opened.rationale


async def test_an_edited_call_is_estimated_again():
    # C15: an edit is judged like any call.
    scene = estimating({None: DEAR, "moon": Estimate(usd=Decimal(3))}, deny_from_usd="2")
    await scene.begin()

    await answer(scene, edit={"to": "moon"})

    assert [] == scene.executor.starts
    assert "cost cap" == (await scene.last(ToolSkipped)).rule


async def test_a_reply_is_not_lost_for_an_estimate_that_is_stopped():
    scene = estimating({})

    async def never(*_):
        await asyncio.Event().wait()

    scene.outside.estimate = never
    await scene.begin()
    await scene.say(StopAsked())

    types = await scene.types()
    assert "ModelReplied" in types
    assert "SessionStopped" == types[-1]


async def test_what_nobody_denies_in_time_is_granted_though_nobody_lives():
    # 003-058, C15, C20, I12
    scene = await asked(auto_approve_after=30)
    assert [] == await scene.first.host.active()
    await scene.first.kill()
    await scene.clock.advance(31)

    await wake(scene)

    assert "auto:auto_approve_after" == (await scene.last(ApprovalResolved)).by
    assert "granted by auto:auto_approve_after" == (await scene.last(ToolStarted)).rule


async def test_a_veto_in_time_wins_though_it_is_read_later():
    # 003-058, I14
    scene = await asked(auto_approve_after=30)
    await scene.first.kill()
    await scene.decide("deny")
    await scene.clock.advance(31)

    await wake(scene)

    assert [] == scene.executor.starts
    assert "denied" == (await scene.last(ApprovalResolved)).verdict


async def test_others_are_asked_when_nobody_answered():
    scene = await asked(on_expiry="escalate", escalate_to=["boss"])
    await scene.clock.advance(HOUR)

    await wake(scene)

    await answer(scene, by="ann")
    assert "ann may not allow it; boss may" == (await scene.last(MessageRefused)).reason
    await answer(scene, by="boss")
    assert "granted by boss" == (await scene.last(ToolStarted)).rule


async def test_a_grant_and_an_expiry_that_race_have_one_winner_everywhere():
    # I3, I9
    for grant_first in (True, False):
        scene = await asked()
        await scene.first.kill()
        name = ApprovalName(SESSION, "s.1.0.1")
        opened = (await scene.outside.facts(GATE))[0]
        at = opened.deadline_at
        vote = Vote("grant", opened.digest, "ann", "", "inbox@2", at)
        gates = [ApprovalGate(scene.outside.journal) for _ in range(2)]
        race = [gates[0].vote(name, vote), gates[1].expire(name, at)]

        answers = await asyncio.gather(*(race if grant_first else race[::-1]))

        verdicts = {answer.verdict for answer in answers if answer.accepted}
        held = await gates[0].supersede(name, "late")
        assert 1 == len(verdicts)
        assert {held.verdict} == verdicts
        ends = [t for t in await scene.outside.types(GATE) if t in VERDICTS]
        assert 1 == len(ends)


async def test_a_stop_supersedes_every_question():
    three = asks_for(("deploy", {"n": 1}), ("deploy", {"n": 2}), ("deploy", {"n": 3}))
    scene = Scene([three, says("done")])
    await scene.begin()

    await scene.say(StopAsked())

    gates = [f"approval-default/s.1.{index}.1" for index in range(3)]
    assert ["ApprovalSuperseded"] * 3 == [(await scene.outside.types(g))[-1] for g in gates]
    assert "SessionStopped" == (await scene.types())[-1]
    assert [] == scene.executor.starts


STARTING = "MessageReceived, ApprovalResolved, SessionContinued, ToolStarted"


@pytest.mark.parametrize(
    "point", ["after VoteGiven, ApprovalGranted", f"before {STARTING}", f"after {STARTING}"]
)
async def test_a_late_start_after_its_grant_was_superseded_is_refused(point):
    # I3, I9: by the store before the start is recorded, by the runner after it.
    scene = await asked()
    await scene.first.kill()
    await scene.decide()

    life = Interrupted({})

    async def stop_elsewhere():
        life.at = {}
        await scene.outside.say(SESSION, StopAsked())
        *_, runner = scene.outside.runners.ports.values()
        elsewhere = World(scene.outside, runner=runner)
        await elsewhere.dispatcher.tick()
        while "SessionStopped" not in await scene.types():
            await take_turns()

    life.at = {point: stop_elsewhere}
    await scene.world(life)

    assert [] == scene.executor.starts
    assert "SessionStopped" == (await scene.types())[-1]


async def test_two_gates_agree_on_one_verdict():
    # I3: compare-and-set; who loses folds on.
    scene = await asked()
    name = ApprovalName(SESSION, "s.1.0.1")
    opened = (await scene.outside.facts(GATE))[0]
    gates = [ApprovalGate(scene.outside.journal) for _ in range(2)]
    at = scene.clock.now()

    one = await gates[0].vote(name, Vote("grant", opened.digest, "ann", "", "inbox@2", at))
    other = await gates[1].vote(name, Vote("deny", opened.digest, "bob", "", "inbox@3", at))
    again = await gates[1].vote(name, Vote("grant", opened.digest, "ann", "", "inbox@2", at))

    assert ("granted", "granted") == (one.verdict, again.verdict)
    assert (False, "already granted") == (other.accepted, other.reason)
    assert 1 == (await scene.outside.types(GATE)).count("VoteGiven")


async def test_a_question_that_was_opened_twice_keeps_its_first_deadline():
    scene = await asked()
    opened = (await scene.outside.facts(GATE))[0]
    gate = ApprovalGate(scene.outside.journal)
    late = opened.model_copy(update={"deadline_at": scene.clock.now()})

    held = await gate.open(ApprovalName(SESSION, "s.1.0.1"), late, None)

    assert opened.deadline_at == held.deadline_at


async def test_who_is_asked_about_a_doubt_is_told_what_is_known():
    # I5: how it is known that the runner is gone, and which attempt it had.
    scene = Scene([asks_for(("pay", {})), says("done")], act=Valve())
    first = await scene.begin()
    await first.kill()

    await scene.world()

    opened = (await scene.outside.facts(GATE))[0]
    assert ("in doubt", "did_it_happen") == (opened.rule, opened.question)
    assert f"Attempt 1 was given to runner {first.name}, which was gone" in opened.rationale
    assert f"process {first.name} has ended" in opened.rationale
