"""Reads the log's file, a page at a time."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from cueline.errors import CorruptEventError, StoreError
from cueline.events.store import Head, RecordedEvent
from cueline.sqlite_library import is_damage, sqlite_library
from cueline.stores.paging import LogPage, Span, faults, unbroken
from cueline.stores.sqlite_file import LogFile
from cueline.stores.tables import EVENT_COLUMNS

PAGE_EVENTS = 256
"""Pages are read on the event loop, in about a millisecond.

In a thread, each row would wait 5 ms for the interpreter's lock while the loop is busy.
"""
PAGE_BYTES = 256 * 1024
"""A page ends with the event that exceeds this."""

_HEAD = "SELECT version, epoch, owner FROM streams WHERE name = ?"
_HEADS = """
SELECT name, version, epoch, owner FROM streams WHERE name IN (SELECT value FROM json_each(?))
"""
_LINE = "SELECT id, name, version, parent, parent_version FROM streams WHERE name = ?"
_PARENT = "SELECT id, name, version, parent, parent_version FROM streams WHERE id = ?"
_STREAM_PAGE = f"""
SELECT ?, {EVENT_COLUMNS} FROM events e
WHERE e.stream = ? AND e.version > ? AND e.version <= ? ORDER BY e.version LIMIT ?
"""  # noqa: S608 - the columns are ours
_STREAM_PAGE_BACK = _STREAM_PAGE.replace("ORDER BY e.version", "ORDER BY e.version DESC")
_LOG_PAGE = f"""
SELECT s.name, {EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream
WHERE e.position > ? AND e.position <= ? %s ORDER BY e.position LIMIT ?
"""  # noqa: S608 - the columns are ours
_SOME = 32
"""The bytes are counted after so many events, which is faster than after each."""
# Like `RecordedEvent._make`, without counting the columns.
_recorded: Callable[[Iterable[Any]], RecordedEvent] = partial(tuple.__new__, RecordedEvent)
_PLACE = "SELECT position FROM events WHERE stream = ? AND version = ?"
_ROW = "SELECT s.name, e.* FROM events e JOIN streams s ON s.id = e.stream WHERE e.position = ?"
_BLOB_SIZE = "SELECT length(content) FROM blobs WHERE hash = ?"
_BLOB_PUT = "SELECT put_us FROM blobs WHERE hash = ?"
_BLOB = "SELECT content FROM blobs WHERE hash = ?"


class SqliteReader:
    """A `PageReader` on one connection; each page is one read transaction.

    A longer transaction would keep the WAL from restarting, so it would grow.
    """

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._db = file.reader()

    def head(self, stream: str) -> Head:
        row = self._one(_HEAD, stream)
        return Head(*row) if row else Head()

    async def heads(self, streams: Collection[str]) -> dict[str, Head]:
        heads = dict.fromkeys(streams, Head())
        for name, *head in self._all(_HEADS, json.dumps(list(heads))):
            heads[name] = Head(*head)
        return heads

    async def last_position(self) -> int:
        """See `EventStore.last_position`.

        Raises:
            LogLostError: other processes find another file; stop.
        """
        self._file.check()
        row = self._one("SELECT max(position) FROM events")
        return int(row[0] or 0) if row else 0

    def data_version(self) -> int:
        """Return a number that changes when another connection commits.

        Raises:
            LogLostError: see `last_position`.
        """
        self._file.check()
        self._file.check_index()
        row = self._one("PRAGMA data_version")
        return int(row[0]) if row else 0

    def blob_size(self, blob: str) -> int:
        """Return the size of the blob without reading it; 0 if it does not exist."""
        row = self._one(_BLOB_SIZE, blob)
        return int(row[0]) if row else 0

    def blob_put_us(self, blob: str) -> int:
        """Return when the blob was last stored, in microseconds since 1970; 0 without it."""
        row = self._one(_BLOB_PUT, blob)
        return int(row[0]) if row else 0

    def blob(self, blob: str) -> bytes | None:
        """Return the blob's content; None if it does not exist."""
        row = self._one(_BLOB, blob)
        return bytes(row[0]) if row else None

    async def line(self, stream: str, after: int, until: int | None) -> Sequence[Span]:
        spans: list[Span] = []
        row = self._one(_LINE, stream)
        while row:
            id_, name, version, parent, base = row
            until = version if until is None else min(until, version)
            spans.append(Span(id_, name, max(after, base or 0), until))
            until = min(until, base) if base is not None else None
            row = self._one(_PARENT, parent) if parent is not None else None
        return [span for span in reversed(spans) if span.after < span.until]

    async def stream_page(self, span: Span) -> Sequence[RecordedEvent]:
        first = span.after + 1
        events = self._stream_events(_STREAM_PAGE, span, first)
        whole = unbroken([event.version for event in events], span.after)
        if not whole:
            raise self._broken(span, first, "it is missing")
        return events[:whole]

    async def stream_page_back(self, span: Span) -> Sequence[RecordedEvent]:
        events = self._stream_events(_STREAM_PAGE_BACK, span, span.until)
        whole = [e for place, e in enumerate(events) if e.version == span.until - place]
        if not whole:
            raise self._broken(span, span.until, "it is missing")
        return whole

    async def log_page(self, after: int, until: int, categories: Collection[str] | None) -> LogPage:
        until = min(until, after + PAGE_EVENTS)
        asked: tuple[object, ...] = (after, until)
        only = ""
        if categories is not None:
            asked = (after, until, *categories)
            only = f"AND s.category IN ({', '.join('?' * len(categories))})"
        events, complete = self._events(
            _LOG_PAGE % only, asked, lambda: self._damaged(after, until)
        )
        if categories is None:
            whole = unbroken([event.position for event in events], after)
            complete = complete and whole == until - after
            events = events[:whole]
        if complete:
            return LogPage(events, until)
        if not events:
            raise self._damaged(after, until)
        return LogPage(events, events[-1].position)

    def faults(self) -> list[CorruptEventError]:
        """Return the contradictions between the other tables and the events."""
        try:
            self._db.execute("BEGIN")
            try:
                return list(faults(self._db.execute))
            finally:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
        except sqlite_library().Error as error:
            raise self._file.error(error) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _one(self, sql: str, *asked: object) -> tuple[Any, ...] | None:
        return next(iter(self._all(sql, *asked)), None)

    def _all(self, sql: str, *asked: object) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, asked).fetchall()
        except sqlite_library().Error as error:
            raise self._file.error(error) from error

    def _events(
        self,
        sql: str,
        asked: Sequence[object],
        damaged: Callable[[], StoreError],
        limit: int = PAGE_EVENTS,
    ) -> tuple[list[RecordedEvent], bool]:
        """Return a page's events, and whether they are the last ones."""
        events: list[RecordedEvent] = []
        size = 0
        cursor = self._db.cursor()
        try:
            rows = map(_recorded, cursor.execute(sql, (*asked, limit)))
            while some := list(islice(rows, _SOME)):
                events += some
                size += sum([len(event.payload or b"") for event in some])
                if size > PAGE_BYTES:
                    return events, False
        except sqlite_library().Error as error:
            if not is_damage(error):
                raise self._file.error(error) from error
            if limit == 1:
                raise damaged() from error
            # Events before a damaged row can still be read, and Python's SQLite reads one row
            # ahead: so read one at a time from here.
            return self._events(sql, asked, damaged, 1)[0], False
        finally:
            cursor.close()
        return events, True

    def _stream_events(self, sql: str, span: Span, first: int) -> list[RecordedEvent]:
        """Return the events of a page that begins with version *first*."""
        asked = (span.name, span.stream, span.after, span.until)
        return self._events(sql, asked, lambda: self._broken(span, first, "it is damaged"))[0]

    def _broken(self, span: Span, version: int, reason: str) -> CorruptEventError:
        try:
            row = self._one(_PLACE, span.stream, version)
        except StoreError:
            row = None
        return CorruptEventError(span.name, version, row[0] if row else 0, reason)

    def _damaged(self, after: int, until: int) -> CorruptEventError:
        """Return the error of the first unreadable position."""
        for position in range(after + 1, until + 1):
            try:
                row = self._one(_ROW, position)
            except StoreError:
                return CorruptEventError("?", 0, position, "it is damaged")
            if row is None:
                return CorruptEventError("?", 0, position, "it is missing")
        return CorruptEventError("?", 0, after + 1, "it is damaged")
