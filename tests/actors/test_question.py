"""Asking a person: through the gate, once, until a deadline (I9, I14)."""

import pytest

from cueline.actors.approval_gate import ApprovalGate, ApprovalName
from cueline.deciders.approval import AUTO_APPROVER, Vote
from cueline.events.inbox import DecisionGiven, MessageSent, ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageRefused,
    SessionWaiting,
    ToolStarted,
)
from cueline.testing.fakes import asks_for, says
from tests.actors.scene import SESSION, Interrupted, Scene, Valve

DEPLOY = asks_for(("deploy", {}))
HOUR = 3600.0
GATE = "approval-default/s.1.0.1"


async def asked(**policy):
    scene = Scene([DEPLOY, says("done")], policy={"approval_seconds": HOUR, **policy})
    scene.first = await scene.begin()
    return scene


async def wake(scene):
    world = await scene.world()
    await scene.clock.settle()
    return world


async def test_a_sensitive_call_waits_for_a_person_at_rest():
    # 000-023, 000-024, I12
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
    # 000-055
    scene = await asked()

    await scene.decide("deny")

    assert [] == scene.executor.starts
    assert "rejected by human operator" in await scene.told()


async def test_an_automatic_grant_is_recorded_as_such():
    # 000-027
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
    "message", [StopAsked(), MessageSent(lane="steer", text="No, do something else.")]
)
async def test_whatever_ends_the_need_supersedes_the_question(message):
    scene = await asked()

    await scene.say(message)

    assert "ApprovalSuperseded" == (await scene.outside.types(GATE))[-1]
    types = await scene.types()
    assert types.index("ApprovalResolved") < len(types) - 1
    assert types[-1] in {"SessionStopped", "SessionCompleted"}


async def test_an_answer_that_is_quicker_than_the_question_is_recorded_after_it():
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
