"""What a vendor counts narrows what is reserved, and nothing else."""

import asyncio

import pytest

from cueline.deciders.session import Status
from cueline.errors import ProviderUnavailableError
from cueline.events.budget import CostReserved
from cueline.testing.fakes import TurnModel
from tests.actors.priced import BUDGET, CENT, SAID, of_kind, scene
from tests.actors.session_harness import Valve


class CountingModel(TurnModel):
    """A model whose vendor counts prompts, as a test says."""

    def __init__(self, count):
        super().__init__(SAID)
        self.says = count
        self.counted = []

    async def count(self, request):
        self.counted.append(request)
        if isinstance(self.says, Exception):
            raise self.says
        return await self.says() if callable(self.says) else self.says


UNCOUNTED = 99


def counting(count, **limits):
    """Return a scene that reserves what was counted, else more."""
    place = scene(**limits)
    place.model = place.outside.model = CountingModel(count)
    place.outside.bound = lambda _, sent, count: (UNCOUNTED if count is None else count, CENT)
    return place


# I8, C23: the count is in the log, so a replay asks for none.
async def test_what_the_vendor_counts_is_reserved_and_recorded():
    place = counting(7, max_tokens=100_000)
    await (await place.begin(open=True)).kill()
    await place.world()

    assert [7, 7, 7] == [fact.tokens for fact in await of_kind(place, CostReserved, BUDGET)]
    assert place.model.asked == place.model.counted


async def test_nothing_is_counted_for_a_session_without_a_limit():
    place = counting(7, max_turns=9)
    await place.begin()

    assert Status.COMPLETED == (await place.state()).status
    assert [] == place.model.counted


async def gives_up():
    raise asyncio.CancelledError


NO_COUNTS = {
    "a cancellation of its own": gives_up,
    "no vendor": ProviderUnavailableError("timeout", "silence"),
    "a bug": ValueError("oh"),
    "none": None,
    "nothing": 0,
    "less than nothing": -5,
}


@pytest.mark.parametrize("count", NO_COUNTS.values(), ids=NO_COUNTS)
async def test_without_a_count_the_call_is_made_all_the_same(count):
    place = counting(count, max_tokens=100_000)
    await place.begin()

    reserved = [fact.tokens for fact in await of_kind(place, CostReserved, BUDGET)]
    assert [UNCOUNTED] * 3 == reserved
    # It was no attempt: nothing is recorded of it, and it was not tried again.
    assert place.model.asked == place.model.counted
    assert Status.COMPLETED == (await place.state()).status


async def test_a_count_ends_with_its_reservation():
    valve = Valve(7)
    place = counting(valve, max_tokens=100_000)
    await (await place.begin()).kill()

    assert (1, 1) == (valve.began, valve.cancelled)
    assert [] == await place.outside.facts(BUDGET)
