"""What was spent by session, agent, model, day and tree (000-021, 000-022, 000-066)."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from cueline.events.message import Cost
from cueline.events.session import ReservationClosed, SessionStarted
from cueline.projections.cost import Spent, descendants_cost, spent, total


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
    assert (2, Decimal("0.3")) == descendants_cost(log_of_three, "session-default/a")
    assert (0, Decimal(0)) == descendants_cost(log_of_three, "session-default/c")


async def test_tokens_and_answers_without_a_price_are_counted(log_of_three):
    (row,) = spent(log_of_three, stream="session-default/c")

    assert Spent(
        "session-default/c", sessions=1, calls=2, unpriced=1,
        sent_tokens=220, cached_tokens=14, output_tokens=20, cost=Decimal("0.1"),
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


def test_a_total_adds_up_every_column():
    one = Spent("a", 1, 2, 3, 4, 5, 6, Decimal(7), Decimal(8), Decimal(9))

    whole = Spent("total", 2, 4, 6, 8, 10, 12, Decimal(14), Decimal(16), Decimal(18))
    assert whole == total([one, one])


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
