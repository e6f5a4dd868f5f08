"""The read model `usage`: tokens and cost by session, model and day."""

from dataclasses import dataclass
from typing import ClassVar

from cueline.projections.row import Names


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The columns of what was used; they come first in their tables."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: str = "0"
    """In US dollars, as an exact decimal."""
    assumed_cost: str = "0"
    """The part of the cost at assumed prices."""
    estimated_cost: str = "0"
    """The part of the cost whose usage is unknown: the highest possible cost."""
    unpriced: int = 0
    """Model calls without a known price."""


@dataclass(frozen=True, slots=True)
class DayUsage(Spending):
    """The usage of one model by one session on one day, in UTC."""

    TABLE: ClassVar[str] = "usage"
    KEY: ClassVar[Names] = ("stream", "provider", "model", "day")
    INDEXES: ClassVar[tuple[Names, ...]] = (("day",),)

    stream: str
    provider: str
    model: str
    day: str
    calls: int = 0
    failed: int = 0
    saved_cost: str = "0"
    """What the tokens read from the cache would have cost more without it."""
