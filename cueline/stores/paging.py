"""What readers of a log's tables share: parts of streams, and pages."""

from collections.abc import Sequence
from typing import NamedTuple

from cueline.events.store import RecordedEvent


class Span(NamedTuple):
    """The part of a stream's events that one row of `streams` holds."""

    stream: int
    name: str
    after: int
    until: int


class LogPage(NamedTuple):
    """Some events of the log, complete up to a position."""

    events: Sequence[RecordedEvent]
    seen: int


def unbroken(numbers: Sequence[int], after: int) -> int:
    """Return how many of *numbers* follow *after* without a gap."""
    if numbers and numbers[-1] - after == len(numbers):
        return len(numbers)
    return sum(number == after + place for place, number in enumerate(numbers, 1))
