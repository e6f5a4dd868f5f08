"""What was spent by session, agent, model, day and tree (000-021, 000-022, 000-066)."""

from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from cueline.events.message import Cost, Usage
from cueline.events.session import (
    ModelFailed,
    PromptPrefixChanged,
    ReservationClosed,
    SessionStarted,
)
from cueline.projections.cost import Spent, descendants, spent, spent_with_total, total


@pytest.fixture
async def log_of_three(log, facts):
    """Return read models of `a`, whose child is `b`, whose child is `c`."""
    await log.tell("a", facts.STARTED, *facts.turn(1, usd="0.5"))
    await log.tell("b", child(facts, "a"), *facts.turn(1, usd="0.2", model="m2"))
    await log.tell("c", child(facts, "b"), *facts.turn(1, usd="0.1"), *facts.turn(2))
    return await log.tell("d", facts.STARTED)


def child(facts, parent):
    return SessionStarted(
        agent=facts.AGENT.model_copy(update={"name": "helper"}),
        goal="Help.",
        open=False,
        attached=False,
        epoch=1,
        parent=f"session-default/{parent}",
        root="session-default/a",
        depth=1,
    )


FAILED = ModelFailed(effect="1.m", attempt=1, kind="auth", message="no key")
A, B, C = (f"session-default/{name}" for name in "abc")


@pytest.mark.parametrize(
    ("by", "costs"),
    [
        ("session", {A: "0.5", B: "0.2", C: "0.1"}),
        ("agent", {"editor": "0.5", "helper": "0.3"}),
        ("model", {"scripted/m1-0101": "0.6", "scripted/m2": "0.2"}),
        ("day", {"2026-03-02": "0.8"}),
        ("tree", {"session-default/a": "0.8"}),
    ],
)
async def test_it_is_summed_up_the_dearest_first(by, costs, log_of_three):
    rows = spent(log_of_three, by)

    assert list(costs.items()) == [(row.name, str(row.cost)) for row in rows]
    assert Decimal("0.8") == total(rows).cost
    assert 4 == total(rows).calls


async def test_days_are_told_in_their_order_both_ends_in(log, facts):
    for day, usd in ((1, "0.1"), (2, "0.9"), (3, "0.5")):
        log.moment = datetime(2026, 3, day, tzinfo=UTC)
        await log.tell(f"s{day}", facts.STARTED, *facts.turn(1, usd=usd))
    db = await log.caught_up()

    assert ["2026-03-01", "2026-03-02", "2026-03-03"] == [row.name for row in spent(db, "day")]
    some = spent(db, "day", since="2026-03-01", until="2026-03-02")
    assert ["2026-03-01", "2026-03-02"] == [row.name for row in some]


async def test_what_descends_from_a_session_is_counted_with_it(log_of_three):
    below = descendants(log_of_three, "session-default/a")

    assert (2, Decimal("0.3")) == (len(below), sum(each.cost for each in below))
    assert [1, 2] == [each.depth for each in below]
    assert [] == descendants(log_of_three, "session-default/c")


async def test_tokens_and_answers_without_a_price_are_counted(log_of_three):
    (row,) = spent(log_of_three, stream="session-default/c")

    assert Spent(
        "session-default/c", sessions=1, calls=2, unpriced=1,
        sent_tokens=220, cached_tokens=14, output_tokens=20, cost=Decimal("0.1"),
        written_tokens=6,
    ) == row  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"since": "2026-03-02"}, 3),
        ({"since": "2026-03-03"}, 0),
        ({"until": "2026-03-01"}, 0),
    ],
)
async def test_it_is_told_by_what_is_asked(asked, rows, log_of_three):
    assert rows == len(spent(log_of_three, **asked))


def cached(facts, turn, usage, saved="0"):
    """Return a turn whose reply has that usage, and what the cache saved in it."""
    *asked, replied = facts.turn(turn, usd="0.1")
    cost = Cost(usd=Decimal("0.1"), prices="list", saved=Decimal(saved))
    return [*asked, replied.model_copy(update={"usage": usage, "cost": cost})]


CHANGED = PromptPrefixChanged(reason="model_switched", before="a 1", after="b 2")


@pytest.mark.parametrize(
    ("by", "name"),
    [
        ("session", "session-default/a"),
        ("agent", "editor"),
        ("model", "scripted/m1-0101"),
        ("day", "2026-03-02"),
        ("tree", "session-default/a"),
    ],
)
async def test_what_a_changed_beginning_of_the_prompt_cost_is_summed_up(by, name, log, facts):
    reads = Usage(input=10, cache_read=1_000)
    anew = Usage(input=600, cache_read=200, cache_write=100)
    db = await log.tell(
        "a",
        *(facts.STARTED, CHANGED, *cached(facts, 1, reads, "0.002")),
        *(CHANGED, CHANGED, *cached(facts, 2, anew), *cached(facts, 3, reads, "0.002"), CHANGED),
    )

    (row,) = spent(db, by)

    assert (row.name, row.cache_breaks, row.missed_tokens) == (name, 1, 700)
    assert (row.saved_cost, row.missed_cost) == (Decimal("0.004"), Decimal("0.0014"))
    assert not any(each.cache_breaks for each in spent(db, by, until="2026-03-01"))


async def test_a_shorter_prompt_misses_no_more_than_was_sent(log, facts):
    db = await log.tell(
        "a",
        *(facts.STARTED, *cached(facts, 1, Usage(cache_read=1_000), "0.002")),
        *(CHANGED, *cached(facts, 2, Usage(input=30))),
    )

    (row,) = spent(db)

    assert (row.missed_tokens, row.missed_cost) == (30, Decimal("0.00006"))


async def test_a_change_before_anything_was_cached_misses_nothing(log, facts):
    db = await log.tell(
        "a",
        *(facts.STARTED, *cached(facts, 1, Usage(input=1_000))),
        *(CHANGED, *cached(facts, 2, Usage(input=1_000))),
    )

    (row,) = spent(db)

    assert (row.cache_breaks, row.missed_tokens, row.missed_cost) == (1, 0, 0)


def test_a_total_adds_up_every_column():
    columns = [each.name for each in fields(Spent)][1:]
    one = Spent("a", **{name: n for n, name in enumerate(columns, 1)})

    whole = Spent("total", **{name: 2 * n for n, name in enumerate(columns, 1)})
    assert whole == total([one, one])


@pytest.mark.parametrize("by", ["model", "day", "session"])
async def test_a_session_with_several_models_on_several_days_counts_once_in_the_total(
    log, facts, by
):
    await log.tell("a", facts.STARTED, *facts.turn(1, usd="0.5"))
    log.moment = datetime(2026, 3, 5, tzinfo=UTC)
    await log.tell("a", *facts.turn(2, usd="0.2", model="m2"))
    db = await log.tell("b", facts.STARTED, facts.requested(1), FAILED)

    _, whole = spent_with_total(db, by, stream=None, since=None, until=None)

    assert (1, 2, Decimal("0.7")) == (whole.sessions, whole.calls, whole.cost)


# The whole reservation, for nobody knows what the lost answer cost.
async def test_an_estimated_cost_counts_and_is_told_apart(log, facts):
    lost = ReservationClosed(
        effect="2.m", attempt=1, outcome="estimated", tokens=900, usd=Decimal("0.25")
    )
    known = lost.model_copy(update={"effect": "1.m", "outcome": "settled", "usd": Decimal("0.5")})
    db = await log.tell(
        "a", facts.STARTED, *facts.turn(1, usd="0.5"), known, facts.requested(2), lost
    )

    for by in ("session", "agent", "model", "day", "tree"):
        whole = total(spent(db, by))
        assert (Decimal("0.75"), Decimal("0.25")) == (whole.cost, whole.estimated_cost)


async def test_an_assumed_price_is_told_apart(log, facts):
    reply = facts.replied(1, usd="0.5")
    assumed = reply.model_copy(update={"cost": Cost(usd=Decimal("0.5"), prices="assumed 12ab")})

    (row,) = spent(await log.tell("a", facts.STARTED, assumed))

    assert Decimal("0.5") == row.assumed_cost


async def test_a_session_that_is_its_own_parent_is_listed_once(log, facts):
    db = await log.tell("a", facts.STARTED.model_copy(update={"parent": A, "root": A}))

    assert [A] == [each.stream for each in descendants(db, A)]
