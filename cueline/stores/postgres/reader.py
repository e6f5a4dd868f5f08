"""Reads the log's tables, a page at a time."""

from collections.abc import Collection, Sequence

from cueline.errors import CorruptEventError
from cueline.events.store import Head, RecordedEvent
from cueline.stores.paging import LogPage, Span, unbroken
from cueline.stores.postgres.connections import Connections, Row
from cueline.stores.postgres.sql import unescaped
from cueline.stores.tables import EVENT_COLUMNS

PAGE_EVENTS = 256

_HEADS = "SELECT name, version, epoch, owner FROM streams WHERE name = ANY (%s)"
_LAST = "SELECT coalesce(max(position), 0) FROM events"
_LINE = """
WITH RECURSIVE line AS (
    SELECT id, name, version, parent, parent_version, 1 AS place FROM streams WHERE name = %s
    UNION ALL
    SELECT s.id, s.name, s.version, s.parent, s.parent_version, line.place + 1
    FROM line JOIN streams s ON s.id = line.parent
)
SELECT id, name, version, parent_version FROM line ORDER BY place
"""
_STREAM_PAGE = f"""
SELECT %s::text, {EVENT_COLUMNS} FROM events e
WHERE e.stream = %s AND e.version > %s AND e.version <= %s ORDER BY e.version LIMIT {PAGE_EVENTS}
"""  # noqa: S608 - the columns are ours
_STREAM_PAGE_BACK = _STREAM_PAGE.replace("ORDER BY e.version", "ORDER BY e.version DESC")
_LOG_PAGE = f"""
SELECT s.name, {EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream
WHERE e.position > %s AND e.position <= %s ORDER BY e.position
"""  # noqa: S608 - the columns are ours
_CATEGORY_PAGE = _LOG_PAGE.replace("ORDER BY", "AND s.category = ANY (%s) ORDER BY")
_PLACE = "SELECT position FROM events WHERE stream = %s AND version = %s"
_HOLES = """
SELECT n FROM generate_series(%s::bigint, %s::bigint) AS n
WHERE NOT EXISTS (SELECT FROM events WHERE position = n) ORDER BY n LIMIT 1
"""
_TEXTS = (3, 9, 10, 11, 12)
"""Of a recorded event, perhaps with NUL: type, actor, attrs, correlation_id, causation_id."""


class PostgresReader:
    """A `PageReader` whose pages are a transaction each."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        heads = dict.fromkeys(streams, Head())
        for name, version, epoch, owner in await self._connections.ask(_HEADS, (list(heads),)):
            heads[name] = Head(version, epoch, None if owner is None else unescaped(owner))
        return heads

    async def last_position(self) -> int:
        [[last]] = await self._connections.ask(_LAST)
        return int(last)

    async def line(self, stream: str, after: int, until: int | None) -> Sequence[Span]:
        spans: list[Span] = []
        for id_, name, version, base in await self._connections.ask(_LINE, (stream,)):
            until = version if until is None else min(until, version)
            spans.append(Span(id_, name, max(after, base or 0), until))
            until = min(until, base) if base is not None else None
        return [span for span in reversed(spans) if span.after < span.until]

    async def stream_page(self, span: Span) -> Sequence[RecordedEvent]:
        events = await self._stream_events(_STREAM_PAGE, span)
        whole = unbroken([event.version for event in events], span.after)
        if not whole:
            raise await self._broken(span, span.after + 1)
        return events[:whole]

    async def stream_page_back(self, span: Span) -> Sequence[RecordedEvent]:
        events = await self._stream_events(_STREAM_PAGE_BACK, span)
        whole = [e for place, e in enumerate(events) if e.version == span.until - place]
        if not whole:
            raise await self._broken(span, span.until)
        return whole

    async def log_page(self, after: int, until: int, categories: Collection[str] | None) -> LogPage:
        until = min(until, after + PAGE_EVENTS)
        if categories is not None:
            asked = (after, until, list(categories))
            return LogPage(_recorded(await self._connections.ask(_CATEGORY_PAGE, asked)), until)
        events = _recorded(await self._connections.ask(_LOG_PAGE, (after, until)))
        whole = unbroken([event.position for event in events], after)
        if not whole:
            holes = await self._connections.ask(_HOLES, (after + 1, until))
            # Without a hole, the row of the event's stream is missing.
            place = holes[0][0] if holes else after + 1
            raise CorruptEventError("?", 0, place, "it is missing")
        return LogPage(events[:whole], after + whole)

    async def _stream_events(self, statement: str, span: Span) -> Sequence[RecordedEvent]:
        asked = (span.name, span.stream, span.after, span.until)
        return _recorded(await self._connections.ask(statement, asked))

    async def _broken(self, span: Span, version: int) -> CorruptEventError:
        rows = await self._connections.ask(_PLACE, (span.stream, version))
        return CorruptEventError(span.name, version, rows[0][0] if rows else 0, "it is missing")


def _recorded(rows: Sequence[Row]) -> list[RecordedEvent]:
    return [RecordedEvent._make(_unescaped(row)) for row in rows]


def _unescaped(row: Row) -> Row:
    texts = [row[place] for place in _TEXTS]
    if "\x01" not in "".join(filter(None, texts)):
        return row
    changed = list(row)
    for place, text in zip(_TEXTS, texts, strict=True):
        changed[place] = None if text is None else unescaped(text)
    return tuple(changed)
