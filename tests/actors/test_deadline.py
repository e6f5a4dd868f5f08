"""When the time of a question is over, and what counts by then (I14)."""

from datetime import timedelta

import pytest

from cueline.deciders.approval import READ_LATE_SECONDS
from cueline.events.agent import Hook
from cueline.events.inbox import PauseAsked, ResumeAsked
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    MessageRefused,
    PeopleNotified,
    SessionWaiting,
    ToolStarted,
)
from cueline.testing.fakes import asks_for, says
from tests.actors.asked import GATE, HOUR, answer, asked, wake
from tests.actors.session_harness import SESSION, SessionHarness, Valve


async def test_an_undecided_approval_expires_and_pauses_the_session():
    # 000-026, 000-056
    scene = await asked()
    await scene.clock.advance(HOUR)

    await wake(scene)

    assert "ApprovalExpired" == (await scene.outside.types(GATE))[-1]
    assert "approval_expired" == (await scene.last(SessionWaiting)).cause.code
    await scene.say(ResumeAsked())
    assert "approval timeout" in await scene.told()


# I14: both count from their moments, whenever somebody drives the session.
async def test_a_resume_after_an_unattended_deadline_continues_at_once():
    scene = await asked()
    await scene.first.kill()
    await scene.clock.advance(HOUR + 1)
    await scene.say(ResumeAsked())

    await wake(scene)

    assert "expired" == (await scene.last(ApprovalResolved)).verdict
    assert "approval timeout" in await scene.told()


async def test_a_resume_before_the_deadline_says_nothing_of_its_end():
    scene = await asked()
    await scene.first.kill()
    await scene.say(ResumeAsked())
    await scene.clock.advance(HOUR + 1)

    await wake(scene)

    assert "approval_expired" == (await scene.last(SessionWaiting)).cause.code


async def test_nobody_is_reminded_of_a_question_whose_time_is_over():
    told = {"command": ("tell",)}
    reminder = Hook(on="reminder", after_seconds=HOUR / 2, **told)
    scene = await asked(hooks=[Hook(on="asked", **told), reminder])
    await scene.first.kill()
    await scene.clock.advance(HOUR)

    await wake(scene)

    facts = await scene.outside.facts(SESSION)
    told = [(f.hook, f.code) for f in facts if isinstance(f, PeopleNotified)]
    assert [(0, "hook_failed"), (1, "question_over")] == told


async def test_a_pending_reminder_does_not_delay_the_next_question():
    told = {"command": ("tell",)}
    hooks = (Hook(on="reminder", after_seconds=HOUR / 2, **told), Hook(on="asked", **told))
    scene = SessionHarness(
        [asks_for(("deploy", {}), ("deploy", {}))],
        policy={"approval_seconds": HOUR, "hooks": hooks},
    )

    world = await scene.begin()

    facts = await scene.outside.facts(SESSION)
    assert {"1.0", "1.1"} == {f.effect for f in facts if isinstance(f, PeopleNotified)}
    assert [] == await world.host.active()


@pytest.mark.parametrize(("given", "verdict"), [("grant", "granted"), ("deny", "denied")])
async def test_the_inbox_is_read_to_its_end_before_an_approval_expires(given, verdict):
    # I14: a decision counts from when the log recorded it, not from when it is read.
    scene = await asked()
    await scene.clock.advance(HOUR - 1)
    await scene.first.kill()
    await scene.decide(given)
    await scene.clock.advance(10)

    await wake(scene)

    facts = await scene.outside.facts(SESSION)
    assert verdict == next(f.verdict for f in facts if isinstance(f, ApprovalResolved))


async def test_a_live_session_reads_its_inbox_before_an_approval_expires():
    valve = Valve()
    scene = SessionHarness(
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

    assert "too_late" == (await scene.last(MessageRefused)).refusal.code
    assert [] == scene.executor.starts


async def test_a_grant_that_came_before_the_deadline_and_is_read_after_it_runs_the_call():
    # I14, 000-022: whoever allowed it in time is not asked again.
    scene = await asked()
    await scene.first.kill()
    await scene.decide("grant")
    await scene.clock.advance(24 * HOUR)

    await wake(scene)

    resolved = await scene.last(ApprovalResolved)
    read_at = scene.clock.now()
    assert read_at + timedelta(seconds=READ_LATE_SECONDS) == resolved.valid_until
    assert "granted by ann" == (await scene.last(ToolStarted)).rule
    assert 1 == (await scene.count())["ApprovalRequested"]


async def test_a_grant_that_was_read_in_time_counts_until_the_deadline():
    # I9
    scene = await asked()
    await scene.say(PauseAsked())
    await scene.decide("grant")
    await scene.clock.advance(HOUR + 1)

    await scene.say(ResumeAsked())

    assert [] == scene.executor.starts
    assert "s.1.0.2" == (await scene.last(ApprovalRequested)).approval


async def test_a_grant_that_was_read_late_is_asked_again_when_its_while_is_over():
    # I9
    scene = await asked()
    await scene.say(PauseAsked())
    await scene.first.kill()
    await scene.decide("grant")
    await scene.clock.advance(HOUR + 1)
    await wake(scene)
    await scene.clock.advance(READ_LATE_SECONDS + 1)

    await scene.say(ResumeAsked())

    assert [] == scene.executor.starts
    assert "s.1.0.2" == (await scene.last(ApprovalRequested)).approval


async def test_an_automatic_grant_counts_although_no_host_lived():
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


async def test_who_is_asked_in_the_end_is_not_needed_before():
    scene = await asked(on_expiry="escalate", escalate_to=["boss"])

    await answer(scene, by="ann")

    assert "granted by ann" == (await scene.last(ToolStarted)).rule


async def test_others_are_asked_when_nobody_answered():
    scene = await asked(on_expiry="escalate", escalate_to=["boss"])
    await scene.clock.advance(HOUR)

    await wake(scene)

    await answer(scene, by="ann")
    refused = (await scene.last(MessageRefused)).refusal
    assert ("not_allowed", ("boss",)) == (refused.code, refused.may_grant)
    await answer(scene, by="boss")
    assert "granted by boss" == (await scene.last(ToolStarted)).rule
