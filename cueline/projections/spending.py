"""Sums of tokens and money in rows that have columns for them."""

from decimal import Decimal

from cueline.events.message import Cost, Usage
from cueline.projections.row import Row


def spend(row: Row, usage: Usage | None, cost: Cost | None) -> None:
    """Add what one model call used, as far as it is known, and what it cost."""
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
    """Add what a call may have cost that nobody knows the cost of."""
    _add(row, "cost", usd)
    _add(row, "estimated_cost", usd)


def _add(row: Row, column: str, usd: Decimal) -> None:
    row[column] = str(Decimal(row[column]) + usd)
