"""A session whose own model cannot answer, on fakes."""

import asyncio

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.session import ModelFailed, ModelRequested
from cueline.testing.fakes import says
from tests.actors.session_harness import SESSION, SessionHarness

OTHER = {"provider": "other", "model": "second", "parameters": {"warm": True}}
DOWN = ProviderUnavailableError("overloaded", "later")


async def test_the_model_that_is_asked_gets_its_own_name_and_parameters():
    scene = SessionHarness(
        {(1, 1): DOWN, (1, 2): says("done")}, fallback=[OTHER], retry={"max_retries": 0}
    )

    await scene.begin()

    asked = [(r.agent.provider, r.agent.model, r.agent.parameters) for r in scene.model.asked]
    assert [("fake", "fake", {}), ("other", "second", {"warm": True})] == asked
    assert "SessionCompleted" == (await scene.types())[-1]


async def test_which_model_answered_is_in_the_log_after_a_crash_as_well():
    replies = {(1, 1): ProviderRefusedError("auth", "no"), (1, 2): says("done")}
    scene = SessionHarness(replies, fallback=[OTHER])
    first = await scene.begin()
    await first.kill()

    facts = await scene.outside.facts(SESSION)

    asked = [fact.fallback for fact in facts if isinstance(fact, ModelRequested)]
    assert [0, 1] == asked
    assert 1 == (await scene.outside.state(SESSION)).turn.fallback


async def gives_up():
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    "outcome",
    [*(ProviderUnavailableError(kind, "") for kind in ("lost", "cancelled", "whatever")), gives_up],
    ids=["lost", "cancelled", "whatever", "CancelledError"],
)
async def test_an_adapter_cannot_say_what_became_of_an_attempt(outcome):
    # 004-020: an attempt that was lost is made again, however often.
    scene = SessionHarness({(1, 1): outcome})

    await scene.begin()

    assert "unknown" == (await scene.last(ModelFailed)).kind
    assert "SessionWaiting" == (await scene.types())[-1]
