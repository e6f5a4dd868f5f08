"""The read model `usage`: tokens and cost by session, model and day."""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from sqlite_utils import Database

from cueline.projections.row import Names, matching, select


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What one session used of one model on one day, in UTC."""

    TABLE: ClassVar[str] = "usage"
    KEY: ClassVar[Names] = ("stream", "provider", "model", "day")
    INDEXES: ClassVar[tuple[Names, ...]] = (("day",),)

    stream: str
    provider: str
    model: str
    day: str
    calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: str = "0"
    """In US dollars, as an exact decimal."""
    assumed_cost: str = "0"
    """The part of it whose prices are assumed."""
    estimated_cost: str = "0"
    """The part of it that nobody knows: all that was reserved for calls that were lost."""
    unpriced: int = 0

    @property
    def usd(self) -> Decimal:
        """What it cost."""
        return Decimal(self.cost)


def usage(
    db: Database,
    *,
    stream: str | None = None,
    model: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[DayUsage]:
    """Return what was used; days are `2026-01-31`, and both ends are in."""
    where, values = matching(
        [("stream = ?", stream), ("model = ?", model), ("day >= ?", since), ("day <= ?", until)]
    )
    return select(db, DayUsage, f"{where} ORDER BY day, stream, provider, model", values)
