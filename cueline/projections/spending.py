"""Sums of tokens and money in rows that have columns for them."""

from decimal import Decimal

from cueline.events.message import Cost, Usage
from cueline.projections.row import Row


def spend(row: Row, usage: Usage, cost: Cost | None) -> None:
    """Add what one model call used."""
    row["input_tokens"] += usage.input
    row["output_tokens"] += usage.output
    row["cache_read_tokens"] += usage.cache_read
    row["cache_write_tokens"] += usage.cache_write
    if cost is None:
        row["unpriced"] += 1
    else:
        row["cost"] = str(Decimal(row["cost"]) + cost.usd)
