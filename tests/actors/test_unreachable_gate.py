"""The gate cannot be reached: the session goes on with everything else (I7, I14)."""

import pytest

from cueline.actors.approval_gate import ApprovalGate
from cueline.actors.background_task import GRACE_SECONDS
from cueline.actors.entity import RETRY_SECONDS
from cueline.errors import LogUnavailableError
from cueline.events.inbox import MessageSent, PauseAsked, ResumeAsked, StopAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageReceived,
    SessionWaiting,
)
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness, Valve

GATE = "approval-default/s.1.0.1"
HOUR = 3600.0


class FarGate:
    """A gate whose answers, or even whose questions, do not arrive while it is away."""

    def __init__(self, gate):
        self.away = False
        self.hears = True
        self.calls = 0
        self._gate = gate

    async def open(self, *asked):
        return await self._tell(self._gate.open, asked)

    async def vote(self, *asked):
        return await self._tell(self._gate.vote, asked)

    async def expire(self, *asked):
        return await self._tell(self._gate.expire, asked)

    async def supersede(self, *asked):
        return await self._tell(self._gate.supersede, asked)

    async def _tell(self, method, asked):
        self.calls += 1
        answer = await method(*asked) if self.hears or not self.away else None
        if self.away:
            raise LogUnavailableError("the gate", "it does not answer")
        return answer


@pytest.fixture
async def scene():
    """A session whose first call needs a person."""
    scene = SessionHarness(
        [asks_for(("deploy", {})), says("done")], policy={"approval_seconds": HOUR}
    )
    scene.gate = FarGate(ApprovalGate(scene.outside.journal))
    return scene


async def begin(scene):
    await scene.outside.start("s", scene.agent)
    await scene.world(gate=scene.gate)


async def come_back(scene):
    scene.gate.away = False
    await scene.clock.advance(1)


@pytest.mark.parametrize("hears", [True, False])
async def test_a_pause_is_read_while_a_question_is_on_its_way(scene, hears):
    scene.gate.away, scene.gate.hears = True, hears
    await begin(scene)

    await scene.say(PauseAsked())
    assert "operator" == (await scene.last(SessionWaiting)).kind

    await come_back(scene)
    await scene.say(ResumeAsked())
    await scene.decide()
    assert (1, 1) == (len(scene.executor.starts), (await scene.count())["ApprovalRequested"])


@pytest.mark.parametrize("hears", [True, False])
@pytest.mark.parametrize(
    ("message", "end"),
    [
        (StopAsked(), "SessionStopped"),
        (MessageSent(lane="steer", text="Leave it."), "SessionCompleted"),
    ],
)
async def test_a_message_that_ends_the_need_prevents_the_question(scene, message, end, hears):
    scene.gate.away, scene.gate.hears = True, hears
    await begin(scene)

    await scene.say(message)
    assert end == (await scene.types())[-1]

    await come_back(scene)
    opened = ["ApprovalOpened", "ApprovalSuperseded"]
    assert (opened if hears else []) == await scene.outside.types(GATE)
    assert 0 == (await scene.count())["ApprovalRequested"]
    assert end == (await scene.types())[-1]


async def test_what_a_steer_made_needless_is_withdrawn_while_the_session_goes_on():
    scene = SessionHarness(
        [asks_for(("deploy", {})), asks_for(("pay", {})), says("done")], act=Valve()
    )
    scene.gate = FarGate(ApprovalGate(scene.outside.journal))
    scene.gate.away = True
    await begin(scene)
    await scene.say(MessageSent(lane="steer", text="Pay instead."))

    await come_back(scene)

    *_, withdrawn = await scene.outside.facts(GATE)
    assert ("ApprovalSuperseded", "steer") == (withdrawn.type, withdrawn.reason)
    assert "ToolStarted" == (await scene.types())[-1]


async def test_a_decision_waits_for_the_gate_and_counts_from_when_it_was_recorded(scene):
    await begin(scene)
    scene.gate.away = True
    await scene.say(MessageSent(lane="note", text="It is Friday."))
    await scene.clock.advance(HOUR - 2)
    await scene.decide("deny")
    await scene.clock.advance(4)
    assert "It is Friday." == (await scene.last(MessageReceived)).message.text

    await come_back(scene)

    assert "denied" == (await scene.last(ApprovalResolved)).verdict


async def test_the_gate_is_not_pestered(scene):
    await begin(scene)
    scene.gate.away = True
    before = scene.gate.calls
    await scene.decide("grant")

    await scene.clock.advance(10)

    assert scene.gate.calls - before <= 10 / RETRY_SECONDS + 2


async def test_outcomes_are_recorded_meanwhile():
    valve = Valve()
    scene = SessionHarness(
        [asks_for(("read", {}), ("deploy", {})), says("done")],
        policy={"approval_seconds": HOUR},
        act=valve,
    )
    scene.gate = FarGate(ApprovalGate(scene.outside.journal))
    await begin(scene)
    assert "s.1.1.1" == (await scene.last(ApprovalRequested)).approval
    scene.gate.away = True
    await scene.decide("grant")

    valve.opened.set()
    await scene.clock.settle()

    assert 1 == (await scene.count())["ToolReturned"]
    assert 0 == (await scene.count())["ApprovalResolved"]


async def test_a_stop_ends_a_call_within_its_grace_although_a_question_cannot_expire():
    # I14
    valve = Valve()
    scene = SessionHarness(
        [asks_for(("read", {}), ("deploy", {}))], policy={"approval_seconds": HOUR}, act=valve
    )
    scene.gate = FarGate(ApprovalGate(scene.outside.journal))
    await begin(scene)
    scene.gate.away, scene.gate.hears = True, False
    await scene.clock.advance(HOUR + 1)

    await scene.say(StopAsked())
    await scene.clock.advance(GRACE_SECONDS)

    assert 1 == valve.cancelled
