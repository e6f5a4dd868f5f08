"""The tables of a batch, in the log's file."""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cueline.events.store import GENESIS, RecordedEvent
from cueline.events.stream import category_of
from cueline.sqlite_library import sqlite_library
from cueline.stores.sqlite_file import LogFile, retry_while_busy
from cueline.stores.tables import EVENT_COLUMNS, EventRow, First, LastEvent, StreamRow

_LAST = "SELECT position, recorded_us FROM events ORDER BY position DESC LIMIT 1"
_FIND = "SELECT id, name, version, epoch, head_hash FROM streams WHERE name = ?"
# CROSS keeps the order: each name is looked up, instead of each stream.
_FIND_ALL = """
SELECT s.id, s.name, s.version, s.epoch, s.head_hash
FROM json_each(?) asked CROSS JOIN streams s ON s.name = asked.value
"""
_LAST_EVENT = """
SELECT version, position, epoch, hash FROM events WHERE stream = ? ORDER BY version DESC LIMIT 1
"""
_CREATE = "INSERT INTO streams (name, category, head_hash) VALUES (?, ?, ?)"
_OWN = "UPDATE streams SET epoch = ?, owner = ? WHERE id = ?"
_BRANCH = "UPDATE streams SET parent = ?, parent_version = ? WHERE id = ?"
_MOVE = "UPDATE streams SET version = ?, head_hash = ? WHERE id = ?"
_CLAIM = (
    "INSERT INTO appends (stream, key, first, count) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_FIND_APPEND = "SELECT first, count FROM appends WHERE stream = ? AND key = ?"
_FIND_OWNED = """
SELECT e.position, coalesce(
    (SELECT position FROM events WHERE position > e.position AND seq = 0 ORDER BY position LIMIT 1),
    (SELECT max(position) + 1 FROM events)
) - e.position
FROM events e WHERE e.stream = ? AND e.version = ? AND e.epoch = ? AND e.seq = 0
"""
_HASH_AT = "SELECT hash FROM events WHERE stream = ? AND version = ?"
_PARENT = "SELECT parent FROM streams WHERE id = ?"
_HAS_BLOB = "SELECT 1 FROM blobs WHERE hash = ?"
_REFER = "INSERT INTO blob_refs (hash, position) VALUES (?, ?)"
_PUT = "INSERT INTO blobs (hash, content, put_us) VALUES (?, ?, ?)"
_RENEW = "UPDATE blobs SET put_us = ? WHERE hash = ?"
_EMPTY = (
    "UPDATE events SET payload = NULL, salt = NULL WHERE stream = ? AND version = ? "
    "RETURNING position"
)
_UNREFER = "DELETE FROM blob_refs WHERE position = ? RETURNING hash"
_DROP = "DELETE FROM blobs WHERE hash = ?1 AND ?1 NOT IN (SELECT hash FROM blob_refs)"
_COLLECT = "DELETE FROM blobs WHERE put_us <= ? AND hash NOT IN (SELECT hash FROM blob_refs)"
# No text equals the number 0, which stands for NULL: see `_bound`.
_INSERT = """
INSERT INTO events (
    stream, version, position, type, schema, payload, occurred_us, recorded_us, epoch, actor,
    attrs, correlation_id, causation_id, step, seq, salt, payload_hash, hash
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), ?, ?, ?, ?, ?
)
"""
_BYTES = (5, 15, 16, 17)
"""The columns payload, salt, payload_hash, hash."""
_PERHAPS_NULL = (10, 11, 12)
"""The columns attrs, correlation_id, causation_id."""
_EVENTS = f"""
SELECT s.name, {EVENT_COLUMNS} FROM events e JOIN streams s ON s.id = e.stream
WHERE e.position BETWEEN ? AND ? ORDER BY e.position
"""  # noqa: S608 - the columns are ours


class SqliteTables:
    """The log's tables, inside a transaction of one connection; see `Tables`.

    It keeps no data between transactions: another process may have appended.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        cursor = db.cursor()
        self._ask: Callable[..., sqlite3.Cursor] = cursor.execute
        self._ask_many = cursor.executemany

    def last(self) -> tuple[int, int]:
        row = self._ask(_LAST).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    def find(self, name: str) -> StreamRow | None:
        row = self._ask(_FIND, (name,)).fetchone()
        return StreamRow(*row) if row else None

    def find_all(self, names: Collection[str]) -> Sequence[StreamRow]:
        asked = json.dumps(list(names))
        return [StreamRow(*row) for row in self._ask(_FIND_ALL, (asked,))]

    def last_event(self, stream: int) -> LastEvent | None:
        row = self._ask(_LAST_EVENT, (stream,)).fetchone()
        return LastEvent(*row) if row else None

    def create(self, name: str) -> int:
        created = self._ask(_CREATE, (name, category_of(name), GENESIS)).lastrowid
        assert created is not None
        return created

    def own(self, stream: int, epoch: int, owner: str) -> None:
        self._ask(_OWN, (epoch, owner, stream))

    def branch(self, stream: int, parent: int, version: int) -> None:
        self._ask(_BRANCH, (parent, version, stream))

    def claim(self, stream: int, key: str, first: First) -> bool:
        return self._ask(_CLAIM, (stream, key, *first)).rowcount == 1

    def find_append(self, stream: int, key: str) -> First | None:
        row = self._ask(_FIND_APPEND, (stream, key)).fetchone()
        return First(*row) if row else None

    def find_owned(self, stream: int, epoch: int, version: int) -> First | None:
        row = self._ask(_FIND_OWNED, (stream, version, epoch)).fetchone()
        return First(*row) if row else None

    def events(self, first: First) -> Sequence[RecordedEvent]:
        last = first.position + first.length - 1
        return list(map(RecordedEvent._make, self._ask(_EVENTS, (first.position, last))))

    def hash_at(self, stream: int, version: int) -> bytes:
        row = self._ask(_HASH_AT, (stream, version)).fetchone()
        while row is None:
            (stream,) = self._ask(_PARENT, (stream,)).fetchone()
            row = self._ask(_HASH_AT, (stream, version)).fetchone()
        return bytes(row[0])

    def has_blob(self, blob: str) -> bool:
        return self._ask(_HAS_BLOB, (blob,)).fetchone() is not None

    def write(
        self,
        events: Sequence[EventRow],
        blobs: Sequence[tuple[str, int]],
        moved: Collection[StreamRow],
    ) -> None:
        self._ask_many(_INSERT, map(_bound, events))
        if blobs:
            self._ask_many(_REFER, blobs)
        self._ask_many(_MOVE, [(row.version, bytearray(row.hash), row.id) for row in moved])

    def empty(self, stream: int, version: int) -> None:
        """See `Tables.empty`; the content is overwritten in the file."""
        self._ask("PRAGMA secure_delete = ON")
        position = self._ask(_EMPTY, (stream, version)).fetchone()
        for blob in self._ask(_UNREFER, position).fetchall():
            self._ask(_DROP, blob)
        self._ask("PRAGMA secure_delete = OFF")

    def put_blob(self, blob: str, content: bytes, put_us: int) -> None:
        """Store a blob, or renew its time."""
        if self._ask(_RENEW, (put_us, blob)).rowcount == 0:
            self._ask(_PUT, (blob, content, put_us))

    def collect_blobs(self, rested_us: int) -> int:
        """Delete unreferenced blobs that were stored before *rested_us*; return their number."""
        return self._ask(_COLLECT, (rested_us,)).rowcount


def _bound(event: EventRow) -> list[Any]:
    """Return *event* in types that Python's driver takes directly: an insert in 3 us, not 8.

    For other types, also `bytes` and `None`, the driver first looks for an adapter.
    """
    row = list(event)
    for column in _BYTES:
        row[column] = bytearray(row[column])
    for column in _PERHAPS_NULL:
        if row[column] is None:
            row[column] = 0
    return row


class SqliteRows:
    """See `LogRows`."""

    def __init__(self, file: LogFile, *, to_write: bool) -> None:
        self.name = str(file.path)
        self._file = file
        self._db: sqlite3.Connection = file.writer() if to_write else file.reader()
        if to_write:
            # Emptied payloads are overwritten, as by an append.
            self._db.execute("PRAGMA secure_delete = ON")

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite_library().Error as error:
            raise self._file.error(error) from error

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        try:
            self._db.executemany(statement, rows)
        except sqlite_library().Error as error:
            raise self._file.error(error) from error

    def finish(self) -> None:
        """See `LogRows.finish`; does nothing, because SQLite chooses the next id itself."""

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            retry_while_busy(self._db, begin)
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # On a full disk, SQLite has ended the transaction itself.
                with suppress(sqlite_library().Error):
                    self._db.execute("ROLLBACK")
                raise
        except sqlite_library().Error as error:
            raise self._file.error(error) from error
