"""Whoever wins the append of half-open has the probe (004-017, D37)."""

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.actors.breaker_registry import BreakerRegistry
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.stores.waiting import take_turns
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor, TurnModel, agent_spec
from tests.drawn import drawn

AGENT = agent_spec(breaker={"threshold": 3})


class Slow:
    """A log whose appends take their time, each as long as a test says."""

    def __init__(self, store, turns):
        self._store = store
        self._turns = turns

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, writes, key):
        for _ in range(next(self._turns, 0)):
            await take_turns()
        return await self._store.append(writes, key)


def hosts_on(outside, how_many, turns):
    store = Slow(outside.store, iter(turns))
    return [
        BreakerRegistry(
            f"h{n}",
            Journal(store, Codec(), outside.clock.now),
            outside.clock,
            account=lambda _: "",
            report=lambda *_: None,
        )
        for n in range(how_many)
    ]


async def race(how_many, turns, *, well):
    """Have hosts open a breaker together, ask for the probe together, and hear of it."""
    outside = Outside.new(TurnModel([]), JournalingExecutor({}))
    hosts = hosts_on(outside, how_many, turns)
    guard = hosts[0].of_model("default", AGENT)
    for host in hosts:
        await host.know([guard])
    await asyncio.gather(
        *(h.record_failure(guard, f"k{n}", "timeout") for n, h in enumerate(hosts * 2))
    )
    await asyncio.gather(*(host.look() for host in hosts))
    await outside.clock.advance(60)
    await asyncio.gather(*(host.probe(guard, f"p{n}") for n, host in enumerate(hosts)))
    going = [n for n, h in enumerate(hosts) if h.admission(guard, f"p{n}").answer == "go"]
    for n, host in enumerate(hosts):
        await (
            host.record_success(guard, f"p{n}")
            if well
            else host.record_failure(guard, f"p{n}", "timeout")
        )
    return going, [fact.type async for _, fact in outside.journal.read(guard.dependency)]


@settings(max_examples=drawn(50), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(2, 5), st.lists(st.integers(0, 6), max_size=40), st.booleans())
def test_over_any_number_of_hosts_there_is_one_probe(how_many, turns, well):
    going, types = asyncio.run(race(how_many, turns, well=well))

    end = "BreakerClosed" if well else "BreakerOpened"
    assert 1 == len(going)
    assert [*["FailureCounted"] * 3, "BreakerOpened", "BreakerHalfOpened", end] == types
