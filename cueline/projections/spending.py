"""Adds tokens and cost to rows with such columns."""

from collections.abc import Iterator
from decimal import Decimal

from cueline.events.message import Cost, Usage
from cueline.events.session import (
    CallsAdded,
    LostAttempt,
    ModelFailed,
    ModelReplied,
    ReservationClosed,
    SessionTakenOver,
)
from cueline.events.store import RecordedEvent
from cueline.projections.row import Row


def spend(row: Row, usage: Usage | None, cost: Cost | None) -> None:
    """Add the known usage and cost of one model call."""
    if usage is not None:
        row["input_tokens"] += usage.input
        row["output_tokens"] += usage.output
        row["cache_read_tokens"] += usage.cache_read
        row["cache_write_tokens"] += usage.cache_write
        row["unpriced"] += cost is None
    if cost is None:
        return
    _add(row, "cost", cost.usd)
    if cost.estimated:
        _add(row, "estimated_cost", cost.usd)
    if cost.prices.startswith("assumed"):
        _add(row, "assumed_cost", cost.usd)


def spend_estimate(row: Row, usd: Decimal) -> None:
    """Add the highest possible cost of a call whose cost is unknown."""
    _add(row, "cost", usd)
    _add(row, "estimated_cost", usd)


def save(row: Row, cost: Cost | None) -> None:
    """Add what the cache saved in one model call."""
    if cost is not None and cost.saved:
        _add(row, "saved_cost", cost.saved)


def _add(row: Row, column: str, usd: Decimal) -> None:
    row[column] = str(Decimal(row[column]) + usd)


def usage_entries(
    session: Row, recorded: RecordedEvent, fact: object
) -> Iterator[tuple[object, ...]]:
    """Return the row of a fact that says what was used; of any other there is none."""
    place = (recorded.stream, recorded.version)
    model = f"{session['provider']}/{getattr(fact, 'model', '') or session['model']}"
    match fact:
        case ModelReplied(calls=calls, usage=usage, cost=cost, cut=cut):
            yield (*place, int(cut is None), len(calls), *_used(usage, cost), model)
        case CallsAdded(calls=calls) if calls:
            yield (*place, 0, len(calls), *_used(Usage(), None), model)
        case ModelFailed(usage=usage, cost=cost) if usage or cost:
            yield (*place, 0, 0, *_used(usage or Usage(), cost), model)
        case SessionTakenOver(lost_attempts=(LostAttempt(cost=Cost(usd=usd)),)):
            yield (*place, 0, 0, 0, 0, 0, 0, str(usd), "0", model)
        case ReservationClosed(outcome="estimated", usd=usd):
            yield (*place, 0, 0, 0, 0, 0, 0, str(usd), "0", model)


def _used(usage: Usage, cost: Cost | None) -> tuple[object, ...]:
    tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    return (*tokens, *(("0", "0") if cost is None else (str(cost.usd), str(cost.saved))))
