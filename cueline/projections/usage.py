"""The read models `usage` and `bookings`: tokens and cost by day, and by fact."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from sqlite3 import Connection
from typing import ClassVar

from cueline.events.store import RecordedEvent
from cueline.projections.read_model import Names, Row, columns, new_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """The columns of the usage, which come first in their tables."""

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
    """The amount that the cache saved for the tokens read from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
    cost: str = "0"
    """In US dollars, as an exact decimal."""
    saved_cost: str = "0"
    """The amount that the cache saved for the tokens read from it."""
    model: str
    """Provider and model, as `scripted/m1`."""


def add(row: Row, used: Mapping[str, int | Decimal]) -> None:
    """Add the columns *used* to those of *row*."""
    for name, value in used.items():
        if name in row:
            exact = isinstance(value, Decimal)
            row[name] = str(Decimal(row[name]) + value) if exact else row[name] + value


def usage_entry(
    recorded: RecordedEvent, model: str, used: Mapping[str, int | Decimal]
) -> Iterator[tuple[object, ...]]:
    """Yield the row of a fact with a usage, the columns *used*."""
    row = new_row(UsageEntry, stream=recorded.stream, version=recorded.version, model=model)
    blank = dict(row)
    add(row, used)
    if row != blank:
        yield tuple(row.values())


_COUNTED = columns(UsageEntry)[2 : columns(UsageEntry).index("cost")]
_USED = f"SELECT {', '.join(_COUNTED)}, cost FROM bookings WHERE stream = ? AND version <= ?"  # noqa: S608 - our own names
PARENT = "SELECT parent, parent_version FROM sessions WHERE stream = ?"
"""The stream that a session was forked from, and the version."""


def inherit(db: Connection, fork: Row) -> None:
    """Add to *fork* the usage of its ancestors up to the fork."""
    stream, until = fork["parent"], fork["parent_version"]
    seen = {fork["stream"]}
    while stream is not None and stream not in seen:
        seen.add(stream)
        _add(db, fork, stream, until)
        stream, above = db.execute(PARENT, [stream]).fetchone() or (None, 0)
        until = min(until, above)


def _add(db: Connection, fork: Row, stream: str, until: int) -> None:
    for *counted, cost in db.execute(_USED, [stream, until]):
        for name, used in zip(_COUNTED, counted, strict=True):
            fork[f"inherited_{name}"] += used
        fork["inherited_cost"] = str(Decimal(fork["inherited_cost"]) + Decimal(cost))
