"""Sums costs by session, agent, model, day or tree of sessions."""

import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Literal

from cueline.errors import ConfigError, CorruptEventError
from cueline.events.stream import shown
from cueline.projections.cost import Spent

GroupBy = Literal["session", "agent", "model", "day", "tree"]
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of each group, highest first, and their total."""

    by: GroupBy
    rows: tuple[Spent, ...]
    total: Spent
    """The total of all rows, also beyond the limit; each session counts once."""
    more_rows: int = 0
    """The number of rows beyond the limit."""
    more_cost: Decimal = Decimal(0)
    damage: CorruptEventError | None = None
    """The unreadable event; the rows have the data before it."""


def day_of(name: str, day: str | date | None) -> str | None:
    """Return a day in the form of the read models.

    Raises:
        ConfigError: there is no such day.
    """
    if day is None:
        return None
    if isinstance(day, date):
        return day.isoformat()[:10]
    try:
        if _DAY.fullmatch(day):
            return date.fromisoformat(day).isoformat()
    except ValueError:
        pass
    raise ConfigError(name, f"{day!r} is no day like 2026-01-31")


def with_id(row: Spent) -> Spent:
    """Return a row with the id of its session instead of the stream."""
    return replace(row, name=shown(row.name)) if row.name.startswith("session-") else row
