"""Reads and checks a log in tables: parts of streams, pages, and the other tables.

The hash chain covers only the events, but the next append also relies on the other tables.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from cueline.errors import CorruptEventError
from cueline.events.store import NO_STREAM, Head, RecordedEvent
from cueline.stores.tables import LastEvent, StreamRow, head_fault
from cueline.stores.waiting import take_turns


class Span(NamedTuple):
    """The part of a stream's events that one row of `streams` holds."""

    stream: int
    name: str
    after: int
    until: int


class LogPage(NamedTuple):
    """Some events of the log, complete up to the position *seen*."""

    events: Sequence[RecordedEvent]
    seen: int


def unbroken(numbers: Sequence[int], after: int) -> int:
    """Return how many of *numbers* directly follow *after*, without a gap."""
    if numbers and numbers[-1] - after == len(numbers):
        return len(numbers)
    return sum(number == after + place for place, number in enumerate(numbers, 1))


class PageReader(Protocol):
    """Reads the tables, a page at a time.

    Each page raises `CorruptEventError` if the very first of its events is damaged or missing.
    """

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        """See `EventStore.heads`."""

    async def last_position(self) -> int:
        """See `EventStore.last_position`."""

    async def line(self, stream: str, after: int, until: int | None) -> Sequence[Span]:
        """Return the spans of a stream's events; the span of the oldest ancestor is first."""

    async def stream_page(self, span: Span) -> Sequence[RecordedEvent]:
        """Return the first events of *span*."""

    async def stream_page_back(self, span: Span) -> Sequence[RecordedEvent]:
        """Return the last events of *span*, newest first."""

    async def log_page(self, after: int, until: int, categories: Collection[str] | None) -> LogPage:
        """Return the first events at positions above *after*, up to *until*."""


class PagedStore:
    """The reading of an `EventStore` in tables. Between pages, other tasks run."""

    def __init__(self, reader: PageReader) -> None:
        self._pages = reader

    async def head(self, stream: str) -> Head:
        return (await self._pages.heads([stream]))[stream]

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        return await self._pages.heads(streams)

    async def last_position(self) -> int:
        return await self._pages.last_position()

    async def read(
        self,
        stream: str,
        after: int = NO_STREAM,
        until: int | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[RecordedEvent]:
        if limit is not None:
            end = after + limit
            until = end if until is None else min(end, until)
        for span in await self._pages.line(stream, after, until):
            rest = span
            while rest.after < rest.until:
                events = await self._pages.stream_page(rest)
                for event in events:
                    yield event
                rest = rest._replace(after=events[-1].version)
                await take_turns()

    async def read_back(
        self, stream: str, until: int | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        spans = await self._pages.line(stream, NO_STREAM, until)
        first = max(spans[-1].until - limit, NO_STREAM) if spans and limit is not None else 0
        for span in reversed(spans):
            rest = span._replace(after=max(span.after, first))
            while rest.after < rest.until:
                events = await self._pages.stream_page_back(rest)
                for event in events:
                    yield event
                rest = rest._replace(until=events[-1].version - 1)
                await take_turns()

    async def read_all(
        self, after: int = 0, categories: Collection[str] | None = None, limit: int | None = None
    ) -> AsyncIterator[RecordedEvent]:
        left = limit
        last = await self._pages.last_position()
        while after < last and left != 0:
            page = await self._pages.log_page(after, last, categories)
            for event in page.events[:left]:
                yield event
            left = None if left is None else left - min(left, len(page.events))
            after = page.seen
            await take_turns()


_HEADS = """
SELECT s.id, s.name, s.version, s.epoch, s.head_hash, s.owner,
    e.version, e.position, e.epoch, e.hash
FROM streams s LEFT JOIN events e
ON e.stream = s.id AND e.version = (SELECT max(version) FROM events WHERE stream = s.id)
"""
_MISPLACED = """
SELECT coalesce(s.name, '?'), first.version, appends.first
FROM appends LEFT JOIN streams s ON s.id = appends.stream
LEFT JOIN events first ON first.position = appends.first
LEFT JOIN events last ON last.position = appends.first + appends.count - 1
LEFT JOIN events next ON next.position = appends.first + appends.count
WHERE (
    first.stream = appends.stream AND first.seq = 0 AND last.seq = appends.count - 1
    AND coalesce(next.seq, 0) = 0
) IS NOT TRUE
"""
_KEYLESS = """
SELECT s.name, e.version, e.position FROM events e JOIN streams s ON s.id = e.stream
WHERE e.seq = 0 AND e.epoch = 0 AND e.position NOT IN (SELECT first FROM appends)
"""


Rows = Callable[[str], Iterable[tuple[Any, ...]]]
"""Returns the rows of a query, all in one transaction."""


def faults(rows: Rows) -> Iterator[CorruptEventError]:
    """Yield the contradictions between the events and the other tables."""
    yield from _heads(rows)
    for stream, version, position in rows(_MISPLACED):
        reason = "no append with a key begins, or ends, where its row says"
        yield CorruptEventError(stream, version or 0, position, reason)
    # An append without an epoch has a key. Without the row of the key, it could be repeated.
    for stream, version, position in rows(_KEYLESS):
        yield CorruptEventError(stream, version, position, "the key of its append is missing")


def _heads(rows: Rows) -> Iterator[CorruptEventError]:
    for id_, name, version, epoch, head, owner, *event in rows(_HEADS):
        last = None if event[0] is None else LastEvent(*event)
        fault = head_fault(StreamRow(id_, name, version, epoch, head), last)
        if fault is None and (owner is None) != (epoch == 0):
            fault = f"the epoch of its stream is {epoch}, and its owner is {owner}"
        if fault is not None:
            at, position = (version, 0) if last is None else last[:2]
            yield CorruptEventError(name, at, position, fault)
