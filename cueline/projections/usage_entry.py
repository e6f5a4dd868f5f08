"""The read model `bookings`: what a session used, fact by fact."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from cueline.events.message import Cost, Usage
from cueline.events.session import (
    LostAttempt,
    ModelFailed,
    ModelReplied,
    ReservationClosed,
    SessionTakenOver,
)
from cueline.events.store import RecordedEvent
from cueline.projections.row import Names


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """What one fact added to what its session used."""

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


def usage_entries(recorded: RecordedEvent, fact: object) -> Iterator[tuple[object, ...]]:
    """Return the row of a fact that says what was used; of any other there is none."""
    place = (recorded.stream, recorded.version)
    match fact:
        case ModelReplied(calls=calls, usage=usage, cost=cost):
            yield (*place, 1, len(calls), *_used(usage, cost))
        case ModelFailed(usage=usage, cost=cost) if usage or cost:
            yield (*place, 0, 0, *_used(usage or Usage(), cost))
        case SessionTakenOver(lost_attempts=(LostAttempt(cost=Cost(usd=usd)),)):
            yield (*place, 0, 0, 0, 0, 0, 0, str(usd))
        case ReservationClosed(outcome="estimated", usd=usd):
            yield (*place, 0, 0, 0, 0, 0, 0, str(usd))


def _used(usage: Usage, cost: Cost | None) -> tuple[object, ...]:
    tokens = (usage.input, usage.output, usage.cache_read, usage.cache_write)
    return (*tokens, "0" if cost is None else str(cost.usd))
