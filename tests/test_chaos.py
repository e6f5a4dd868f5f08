"""Sessions among faults: the vendor's SDK, a real server, and every fault there is (004-074).

llmock answers as Anthropic does, on purpose badly: 429 with and without
Retry-After, 529, 500, connections that end in the middle, streams that stop
early, stall, or are no JSON. Every fault is drawn by the number of the request,
so that a run without retries meets the same ones each time.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from time import monotonic

import pytest
from llmock.scenarios import Fail, Match, StreamFault

from cueline import Agent, open_runtime
from cueline.deciders.session import Status
from cueline.events.agent import BreakerPolicy, RetryPolicy
from cueline.runtime import open_log

SESSIONS = 24
RETRY = RetryPolicy(max_retries=8, base_seconds=0.15, factor=3, cap_seconds=1.35, jitter=0.1)
NO_RETRY = RetryPolicy(max_retries=0)
PATIENCE = {"chunk_timeout_seconds": 0.4}
RETRY_AFTER = 0.4
KINDS = 8
LET_OUT_SECONDS = 0.25
"""What had been let out when a breaker opened, or a hold began, still goes out."""
UNHEARD = ("ReadError", "WriteError", "ConnectError", "silence (Connect", "silence (Pool")
"""Of requests on a connection that the server was just closing, or that was not made in time."""
TURNS = {"BreakerOpened", "BreakerHalfOpened", "BreakerClosed"}


@dataclass(frozen=True)
class Sometimes(Match):
    """Accepts a share of the requests, by the dice."""

    share: float = 0.0
    dice: Random = field(default_factory=Random, compare=False)

    def accepts(self, info):
        return super().accepts(info) and self.dice.random() < self.share


@dataclass(frozen=True)
class Outage(Match):
    """Accepts every request, until so many came after the first rush."""

    arrived: list[float] = field(default_factory=list, compare=False)
    probes: int = 0

    def accepts(self, info):
        self.arrived.append(monotonic())
        later = [when for when in self.arrived if when - self.arrived[0] > LET_OUT_SECONDS]
        return len(later) <= self.probes


def every_fault(share, seed):
    """Return faults of every kind that hit *share* of the requests together."""
    each = Sometimes(share=1 - (1 - share) ** (1 / KINDS), dice=Random(seed))
    fails = [
        Fail(429, retry_after=RETRY_AFTER, times=None, match=each),
        # Else llmock puts a Retry-After of a second into each of them.
        *(Fail(status, retry_after=0, times=None, match=each) for status in (429, 529, 500)),
    ]
    broken = ("disconnect", "truncate", "stall", "malformed")
    return [*fails, *(StreamFault(kind, times=None, match=each) for kind in broken)]


def agents(*, retry=RETRY, accounts=1, **breaker):
    return [
        Agent(
            name="chaos",
            provider="anthropic",
            model="claude-opus-4-6",
            parameters=PATIENCE,
            key_variable=f"KEY_{number % accounts}",
            retry=retry,
            breaker=BreakerPolicy(**breaker),
        )
        for number in range(SESSIONS)
    ]


@pytest.fixture
def keys(llmock, monkeypatch):
    for number in range(SESSIONS):
        monkeypatch.setenv(f"KEY_{number}", f"sk-test-{number:010}")


async def run(path, agents: Sequence[Agent]) -> list[Status]:
    """Drive a session of each agent to its rest, and return how each stands."""
    async with open_runtime(path, on="inline") as runtime:
        sessions = [await runtime.start(a, f"Goal {n}.") for n, a in enumerate(agents)]
        return [result.status for result in await asyncio.gather(*(s.result() for s in sessions))]


def succeeded(statuses):
    return statuses.count(Status.COMPLETED) / len(statuses)


def share_of_faults(llmock):
    return sum(record.fault is not None for record in llmock.requests) / len(llmock.requests)


async def read_log(path):
    async with open_log(path) as log:
        read = log.journal().read_all(categories={"breaker", "session"})
        return [(recorded.recorded_at, fact) async for recorded, fact in read]


# Without retries: what the figure of the next test is to be held against.
async def test_without_retries_most_sessions_fail(llmock, keys, tmp_path):
    llmock.add(*every_fault(0.55, seed=1))

    statuses = await run(tmp_path / "log.db", agents(retry=NO_RETRY, threshold=0))

    assert 0.30 < share_of_faults(llmock)
    assert 0.50 > succeeded(statuses)


# 004-074. Each session has a key of its own, so that nobody waits on account of
# another: the verdict takes a pause that is longer than the next for a missing back-off.
async def test_with_retries_more_than_nine_of_ten_succeed(llmock, keys, tmp_path):
    llmock.add(*every_fault(0.55, seed=1))

    statuses = await run(tmp_path / "log.db", agents(accounts=SESSIONS, threshold=0))

    assert 0.30 < share_of_faults(llmock)
    assert 0.90 < succeeded(statuses)
    llmock.assert_resilient(strict=True)


# 004-005: all faults at once, one account, one breaker.
async def test_sessions_that_share_a_breaker_get_there_together(llmock, keys, tmp_path):
    llmock.add(*every_fault(0.40, seed=2))

    statuses = await run(tmp_path / "log.db", agents(threshold=8, timeout_seconds=0.5))

    assert 0.30 < share_of_faults(llmock)
    assert 0.90 < succeeded(statuses)
    llmock.assert_resilient()
    await assert_nobody_called_before_they_might(llmock, tmp_path / "log.db")


# An outage: nothing but probes goes out, and all go on by themselves when it is over.
async def test_an_outage_is_sat_out_behind_the_breaker(llmock, keys, tmp_path):
    llmock.add(Fail(503, times=None, retry_after=0, match=Outage(probes=2)))

    statuses = await run(tmp_path / "log.db", agents(threshold=5, timeout_seconds=0.5))

    assert {Status.COMPLETED} == set(statuses)
    llmock.assert_resilient(strict=True)
    await assert_nobody_called_before_they_might(llmock, tmp_path / "log.db")


async def assert_nobody_called_before_they_might(llmock, path):
    """Check what went out against what the log says of breakers."""
    log = await read_log(path)
    went_out = [at for at, fact in log if fact.type == "ModelStarted"]
    turns = [fact for _, fact in log if fact.type in TURNS]
    probes = sum(fact.type == "BreakerHalfOpened" for fact in turns)
    not_closed = [
        at
        for before, after in pairwise(turns)
        if before.type != "BreakerClosed"
        for at in between(went_out, before.at, after.at)
    ]
    holds = [fact for _, fact in log if fact.type == "BreakerHeld"]

    failed = [fact for _, fact in log if fact.type == "ModelFailed"]
    unheard = sum(fact.message.startswith(UNHEARD) for fact in failed)
    assert len(llmock.requests) <= len(went_out) <= len(llmock.requests) + unheard
    assert len(not_closed) <= probes
    assert probes
    assert not any(between(went_out, hold.at, hold.until) for hold in holds)


def between(moments, since, until):
    """Return the moments in a span, but for those that were let out as it began."""
    return [m for m in moments if (m - since).total_seconds() > LET_OUT_SECONDS and m < until]
