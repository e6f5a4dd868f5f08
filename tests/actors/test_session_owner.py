"""Who has a session, whether that process lives, and who may take it over."""

import pytest

from cueline.actors.session_owner import OrphanDetector, check_resume, owner_of
from cueline.errors import (
    SessionFinishedError,
    SessionOwnedError,
)
from cueline.events.inbox import PauseAsked
from cueline.testing.fakes import says
from tests.actors.session_harness import SESSION, SessionHarness, in_a_call, living


async def owner(scene):
    outside = scene.outside
    return await owner_of(outside.store, outside.board, SESSION, scene.clock.now())


async def test_what_was_seen_before_the_machine_slept_counts_no_more():
    scene, _ = await in_a_call()
    outside = scene.outside
    orphan_detector = OrphanDetector(
        SESSION, outside.store, outside.board, scene.clock, taken_up=lambda: False
    )
    assert await orphan_detector.orphan_reason(idle=False) is None

    await scene.clock.advance(3600)

    assert await orphan_detector.orphan_reason(idle=False) is None


async def test_what_a_living_process_drives_is_not_resumed():
    scene, world = await in_a_call()
    await living(scene, world.name)

    with pytest.raises(SessionOwnedError):
        check_resume(await scene.state(), [], await owner(scene))


async def test_what_a_living_process_is_to_pause_is_resumed_by_a_word_to_it():
    scene, world = await in_a_call()
    await living(scene, world.name)

    check_resume(await scene.state(), [PauseAsked()], await owner(scene))


async def test_what_a_dead_process_drove_is_resumed():
    scene, world = await in_a_call()
    await living(scene, world.name, process_started=1)

    assert await owner(scene) is None
    check_resume(await scene.state(), [], await owner(scene))


async def test_a_waiting_session_can_be_taken_over_from_any_owner():
    scene = SessionHarness([says("done")])
    world = await scene.begin(open=True)
    await living(scene, world.name)

    check_resume(await scene.state(), [], await owner(scene))


async def test_what_has_ended_is_not_taken_over():
    scene = SessionHarness([says("done")])
    await scene.begin()

    with pytest.raises(SessionFinishedError, match="s: the session has ended: completed"):
        check_resume(await scene.state(), [], None)
