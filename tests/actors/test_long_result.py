"""A model gets as much of a tool's result as its context window allows, on fakes."""

import json

import pytest

from cueline.deciders.compaction import UNKNOWN
from cueline.errors import ProviderUnavailableError
from cueline.events.agent import Fallback
from cueline.events.session import ToolReturned
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, SessionHarness

LONG = "0123456789" * 20_000


async def long_result(_order):
    return LONG


def sent(request):
    (result,) = [each for each in map(json.loads, request.messages) if each["role"] == "tool"]
    return result["text"]


@pytest.mark.parametrize(
    ("window", "most"), [(None, UNKNOWN), (8_000, 6_000), (200_000, 150_000), (1_000_000, 750_000)]
)
async def test_a_result_is_cut_by_the_window_and_recorded_whole(window, most):
    scene = SessionHarness(
        [asks_for(("read", {})), says("Done.")], act=long_result, context_window=window
    )

    await scene.begin()

    told = sent(scene.model.asked[-1])
    assert (most >= len(LONG)) == (told == LONG)
    assert min(most, len(LONG)) <= len(told) < min(most, len(LONG)) + 100
    assert LONG == (await scene.last(ToolReturned)).output


async def test_another_model_gets_what_its_own_window_allows():
    small = Fallback(provider="fake", model="small", context_window=8_000)
    fails = ProviderUnavailableError("overloaded", "no")
    replies = {(1, 1): asks_for(("read", {})), (2, 1): fails, (2, 2): says("Done.")}
    scene = SessionHarness(
        replies,
        act=long_result,
        context_window=1_000_000,
        fallback=(small,),
        retry={"max_retries": 0},
    )

    await scene.begin()

    first, second = map(sent, scene.model.asked[-2:])
    assert LONG == first
    assert len(second) < 6_100


async def test_each_request_begins_with_the_one_before():
    asks = asks_for(("read", {}))
    scene = SessionHarness([asks, asks, says("Done.")], act=long_result, context_window=8_000)

    await scene.begin()

    second, third = scene.model.asked[1:]
    assert second.messages == third.messages[: len(second.messages)]
    assert (await scene.state()).stream == SESSION
