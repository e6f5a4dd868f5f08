"""Tokens and cost by session, model and day (000-045, 000-046)."""

from decimal import Decimal

import pytest

from cueline.events.agent import Fallback
from cueline.events.session import ModelFailed, ModelReplied, ModelRequested
from cueline.projections.read_model import select
from cueline.projections.usage import DayUsage


def usage(db):
    return select(db, DayUsage, "ORDER BY day, stream, provider, model")


@pytest.fixture
async def used(log, facts):
    """Return read models of two sessions, the second of which began after midnight."""
    await log.tell("a", facts.STARTED, *facts.turn(1, usd="0.1"), *facts.turn(2, usd="0.2"))
    failed = ModelFailed(effect="1.m", attempt=1, kind="overloaded", message="later")
    await log.tell("b", facts.STARTED, failed, *facts.turn(1, model="m2"))
    return await log.tell("a", *facts.turn(3, usd="0.1"))


async def test_what_was_used_adds_up_by_model_and_day(used):
    assert [
        ("a", "m1-0101", "2026-03-02", 3, 0, 300, "0.4", 0),
        ("b", "m1", "2026-03-02", 0, 1, 0, "0", 0),
        ("b", "m2", "2026-03-02", 1, 0, 100, "0", 1),
    ] == [
        (
            *(row.stream.removeprefix("session-default/"), row.model, row.day),
            *(row.calls, row.failed, row.input_tokens, row.cost, row.unpriced),
        )
        for row in usage(used)
    ]


async def test_a_day_ends_at_midnight_in_utc(log, facts):
    log.moment = log.moment.replace(hour=22)
    await log.tell("a", facts.STARTED, *facts.turn(1))
    log.moment = log.moment.replace(hour=23, minute=59, second=59)
    db = await log.tell("a", *facts.turn(2))

    assert ["2026-03-01", "2026-03-02"] == [row.day for row in usage(db)]


async def test_costs_are_exact(log, facts):
    turns = [fact for n in range(1, 11) for fact in facts.turn(n, usd="0.000000000000000001")]

    (row,) = usage(await log.tell("a", facts.STARTED, *turns))

    assert Decimal("0.000000000000000010") == Decimal(row.cost)


async def test_a_call_is_counted_for_the_model_that_was_asked(log, facts):
    other = Fallback(provider="other", model="m9")
    agent = facts.STARTED.agent.model_copy(update={"fallback": (other,)})
    failed = ModelFailed(effect="1.m", attempt=1, kind="overloaded", message="later")
    again = ModelRequested(effect="1.m", attempt=2, digest="", prefix_digest="", fallback=1)
    replied = ModelReplied(effect="1.m", attempt=2, stop_reason="end_turn")
    requested = again.model_copy(update={"attempt": 1, "fallback": 0})

    started = facts.STARTED.model_copy(update={"agent": agent})
    db = await log.tell("a", started, requested, failed, again, replied)

    own = (facts.STARTED.agent.provider, facts.STARTED.agent.model)
    told = {(row.provider, row.model): (row.calls, row.failed) for row in usage(db)}
    assert {own: (0, 1), ("other", "m9"): (1, 0)} == told
