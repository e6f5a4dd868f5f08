"""Answers that race: one of them wins, the same one everywhere (I3)."""

import asyncio
from datetime import timedelta

import pytest

from cueline.actors.approval_gate import ApprovalGate, ApprovalName
from cueline.deciders.approval import Vote
from cueline.events.inbox import DecisionGiven, MessageSent, StopAsked
from cueline.stores.waiting import take_turns
from cueline.testing.crash import World
from cueline.testing.fakes import asks_for, says
from tests.actors.asked import DEPLOY, GATE, STARTING, asked
from tests.actors.session_harness import SESSION, Interrupted, SessionHarness, Valve

VERDICTS = {"ApprovalGranted", "ApprovalDenied", "ApprovalExpired", "ApprovalSuperseded"}


async def test_an_answer_that_is_quicker_than_the_question_is_recorded_after_it():
    # 003-018
    scene = SessionHarness([DEPLOY, says("done")])

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


class SlowGate(ApprovalGate):
    """A gate that has opened what it is asked, and lets whoever asked wait for the answer."""

    def __init__(self, journal):
        super().__init__(journal)
        self.answers = asyncio.Event()

    async def open(self, *asked):
        answer = await super().open(*asked)
        await self.answers.wait()
        return answer


async def test_a_question_that_is_opened_when_its_need_has_ended_is_withdrawn():
    scene = SessionHarness([DEPLOY, asks_for(("pay", {})), says("done")], act=Valve())
    gate = SlowGate(scene.outside.journal)
    await scene.outside.start("s", scene.agent)
    await scene.world(gate=gate)
    await scene.say(MessageSent(lane="steer", text="Pay instead."))

    gate.answers.set()
    await scene.clock.settle()

    *_, withdrawn = await scene.outside.facts(GATE)
    assert ("ApprovalSuperseded", "steer") == (withdrawn.type, withdrawn.reason)
    assert "ToolStarted" == (await scene.types())[-1]


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

        verdicts = {answer.verdict for answer in answers if answer.refusal is None}
        held = await gates[0].supersede(name, "stop")
        assert 1 == len(verdicts)
        assert {held.verdict} == verdicts
        ends = [t for t in await scene.outside.types(GATE) if t in VERDICTS]
        assert 1 == len(ends)


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
    assert ("already_decided", "granted") == (other.refusal.code, other.refusal.status)
    assert 1 == (await scene.outside.types(GATE)).count("VoteGiven")


async def test_gates_that_do_the_same_at_once_agree_although_each_has_a_time_of_its_own():
    # I3: a session's former owner may still be asking when its next one does.
    scene = await asked()
    first = (await scene.outside.facts(GATE))[0]
    later = first.model_copy(update={"deadline_at": first.deadline_at + timedelta(seconds=1)})
    one, other = (ApprovalGate(scene.outside.journal) for _ in range(2))
    names = [ApprovalName(SESSION, f"s.1.0.{n}") for n in (1, 2, 3)]
    await one.open(names[2], first, None)

    opened = await asyncio.gather(
        one.open(names[1], first, None), other.open(names[1], later, None)
    )
    expired = await asyncio.gather(
        one.expire(names[0], first.deadline_at), other.expire(names[0], later.deadline_at)
    )
    ended = await asyncio.gather(
        one.supersede(names[2], "stop"), other.supersede(names[2], "change")
    )

    assert opened[0] == opened[1]
    assert expired[0] == expired[1]
    assert ended[0] == ended[1]


async def test_a_question_that_was_opened_twice_keeps_its_first_deadline():
    scene = await asked()
    opened = (await scene.outside.facts(GATE))[0]
    gate = ApprovalGate(scene.outside.journal)
    late = opened.model_copy(update={"deadline_at": scene.clock.now()})

    held = await gate.open(ApprovalName(SESSION, "s.1.0.1"), late, None)

    assert opened.deadline_at == held.deadline_at
