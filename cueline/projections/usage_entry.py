"""The read model `bookings`: the usage of a session, by fact."""

from dataclasses import dataclass
from typing import ClassVar

from cueline.projections.row import Names


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """The usage that one fact adds to its session."""

    TABLE: ClassVar[str] = "bookings"
    KEY: ClassVar[Names] = ("stream", "version")
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    version: int
    turns: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: str
    """In US dollars, as an exact decimal."""
    saved_cost: str
    """What the tokens read from the cache would have cost more without it."""
    model: str
    """Provider and model, as `scripted/m1`."""
