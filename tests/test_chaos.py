"""Sessions among faults: the vendor's SDK, a real server, and every fault there is (004-074).

llmock answers as Anthropic does, on purpose badly: 429 with and without
Retry-After, 529, 500, connections that end in the middle, streams that stop
early, stall, or are no JSON. Every fault is drawn by the number of the request,
so that a run without retries meets the same ones each time.

llmock judges by the time between two requests. What the log tells is judged
exactly beside that: pauses by what was recorded, and what a breaker let out by
what its host knew then.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from random import Random

import pytest
from llmock.scenarios import Fail, Match, StreamFault

from cueline import Agent, open_runtime
from cueline.actors.breaker_registry import BreakerRegistry
from cueline.deciders.breaker import admission
from cueline.deciders.session import Status
from cueline.events.agent_parts import BreakerPolicy, RetryPolicy
from cueline.runtime.open_log import open_log

SESSIONS = 24
RETRY = RetryPolicy(max_retries=8, base_seconds=0.3, factor=3, cap_seconds=2.7, jitter=0.1)
"""Pauses that differ by more than a busy machine is late: llmock takes one that is not longer
than the one before for a missing back-off."""
NO_RETRY = RetryPolicy(max_retries=0)
PATIENCE = {"chunk_timeout_seconds": 2}
"""Longer than a machine is busy: what falls silent does so by a fault."""
RETRY_AFTER = 1.0
KINDS = 8
UNHEARD = ("ReadError", "WriteError", "ConnectError", "silence (Connect", "silence (Pool")
"""Of requests on a connection that the server was just closing, or that was not made in time."""


@dataclass(frozen=True)
class Sometimes(Match):
    """Accepts a share of the requests, by the dice."""

    share: float = 0.0
    dice: Random = field(default_factory=Random, compare=False)

    def accepts(self, info):
        return super().accepts(info) and self.dice.random() < self.share


@dataclass(frozen=True)
class Outage(Match):
    """Accepts every request, until more than so many probes went out."""

    learned: list = field(default_factory=list, compare=False)
    probes: int = 0

    def accepts(self, info):
        return len({state.since for _, _, state in self.learned if state.probe}) <= self.probes


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
def learned(monkeypatch):
    """What the host learns of breakers: when, of which, and its state."""
    known = []
    learn = BreakerRegistry._learn

    def learn_and_tell(self, stream, read):
        learn(self, stream, read)
        known.append((self._clock.now(), stream, self._known[stream].state))

    monkeypatch.setattr(BreakerRegistry, "_learn", learn_and_tell)
    return known


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
        read = log.journal().read_all(categories={"session"})
        return [(recorded, fact) async for recorded, fact in read]


# Without retries: what the figure of the next test is to be held against.
async def test_without_retries_most_sessions_fail(llmock, keys, tmp_path):
    llmock.add(*every_fault(0.55, seed=1))

    statuses = await run(tmp_path / "log.db", agents(retry=NO_RETRY, threshold=0))

    assert 0.30 < share_of_faults(llmock)
    assert 0.50 > succeeded(statuses)


# 004-074: each session has a key of its own, so that nobody waits on account of another.
async def test_with_retries_more_than_nine_of_ten_succeed(llmock, keys, tmp_path):
    llmock.add(*every_fault(0.55, seed=1))

    statuses = await run(tmp_path / "log.db", agents(accounts=SESSIONS, threshold=0))

    assert 0.30 < share_of_faults(llmock)
    assert 0.90 < succeeded(statuses)
    llmock.assert_resilient(strict=True)
    assert_pauses_are_kept(await read_log(tmp_path / "log.db"))


# 004-005: all faults at once, one account, one breaker.
async def test_sessions_that_share_a_breaker_get_there_together(llmock, keys, learned, tmp_path):
    llmock.add(*every_fault(0.40, seed=2))

    statuses = await run(tmp_path / "log.db", agents(threshold=8, timeout_seconds=0.5))

    assert 0.30 < share_of_faults(llmock)
    assert 0.90 < succeeded(statuses)
    llmock.assert_resilient()
    log = await read_log(tmp_path / "log.db")
    assert_pauses_are_kept(log)
    assert_nobody_called_before_they_might(llmock, log, learned)


# An outage: nothing but probes goes out, and all go on by themselves when it is over.
async def test_an_outage_is_sat_out_behind_the_breaker(llmock, keys, learned, tmp_path):
    llmock.add(Fail(503, times=None, retry_after=0, match=Outage(learned=learned, probes=2)))

    statuses = await run(tmp_path / "log.db", agents(threshold=5, timeout_seconds=0.5))

    assert {Status.COMPLETED} == set(statuses)
    llmock.assert_resilient(strict=True)
    log = await read_log(tmp_path / "log.db")
    assert_pauses_are_kept(log)
    assert_nobody_called_before_they_might(llmock, log, learned)


def assert_pauses_are_kept(log):
    """Check that each pause is as long as the policy or the vendor says, and is over."""
    calls = defaultdict(list)
    for recorded, fact in log:
        if fact.type in {"ModelFailed", "ModelStarted"}:
            calls[recorded.stream].append((recorded.occurred_at, fact))
    for (_, failed), (started_at, _) in chain.from_iterable(map(pairwise, calls.values())):
        if failed.type == "ModelFailed":
            pause = (failed.retry_at - failed.failed_at).total_seconds()
            growing = RETRY.base_seconds * RETRY.factor ** (failed.attempt - 1)
            least = min(growing, RETRY.cap_seconds) * (1 - RETRY.jitter)
            assert pause >= (failed.retry_after or round(least, 3))
            assert started_at >= failed.retry_at


def assert_nobody_called_before_they_might(llmock, log, learned):
    """Check what went out against what its host knew of breakers."""
    went_out = [
        (recorded.occurred_at, f"{recorded.stream}/{fact.effect}")
        for recorded, fact in log
        if fact.type == "ModelStarted"
    ]
    failed = [fact for _, fact in log if fact.type == "ModelFailed"]
    unheard = sum(fact.message.startswith(UNHEARD) for fact in failed)
    assert len(llmock.requests) <= len(went_out) <= len(llmock.requests) + unheard
    probes = {(stream, state.since) for _, stream, state in learned if state.probe}
    not_closed = []
    for at, call in went_out:
        known = {stream: state for since, stream, state in learned if since < at}
        not_closed += [call for state in known.values() if state.phase != "closed"]
        assert not any(state.held_until and state.held_until > at for state in known.values())
        assert {"go"} >= {admission(state, call, at).answer for state in known.values()}
    assert len(not_closed) <= len(probes)
    assert probes
