"""Copies a log row by row, with the same positions, chains, keys, epochs and blobs.

The backends have the same tables and columns. A copy can be stopped at any moment, and
continues after the copied events. The id of an unfinished copy marks it as
unfinished, so no process can open it as a log.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from cueline.errors import LogUnavailableError

PAGE: Final = 1000
"""Rows in one transaction."""
_UNFINISHED = "copy of "
_ID = "SELECT log_id, created_us FROM meta"
_LAST = "SELECT coalesce(max(position), 0) FROM events"
_HASH = "SELECT hash FROM events WHERE position = ?"
_EMPTIED = "SELECT position FROM events WHERE payload IS NULL"
_EMPTY = "UPDATE events SET payload = NULL, salt = NULL WHERE position = ?"
_UNREFER = "DELETE FROM blob_refs WHERE position = ?"
_LOOSE = "SELECT hash FROM blobs WHERE hash NOT IN (SELECT hash FROM blob_refs)"
_BLOB = "SELECT hash, content, put_us FROM blobs WHERE hash = ?"
_DROP = "DELETE FROM blobs WHERE hash = ?"


class Table(NamedTuple):
    """A table, its key and its columns."""

    name: str
    key: Sequence[str]
    columns: Sequence[str]
    renewed: bool = False
    """Whether rows that were copied may have changed, so that they are copied again."""

    def insert(self, columns: Sequence[str]) -> str:
        """Return the statement that inserts a row with *columns*."""
        rest = [name for name in columns if name not in (*self.key, "name", "category")]
        changes = ", ".join(f"{name} = excluded.{name}" for name in rest)
        then = f"UPDATE SET {changes}" if self.renewed else "NOTHING"
        marks = ", ".join("?" * len(columns))
        return (
            f"INSERT INTO {self.name} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608 - our own names
            f"ON CONFLICT ({', '.join(self.key)}) DO {then}"
        )


EVENTS = Table(
    "events",
    ("position",),
    (
        *("position", "stream", "version", "seq", "step", "type", "schema", "occurred_us"),
        *("recorded_us", "epoch", "actor", "correlation_id", "causation_id", "attrs", "payload"),
        *("salt", "payload_hash", "hash"),
    ),
)
BLOBS = Table("blobs", ("hash",), ("hash", "content", "put_us"))
_STREAM = ("id", "name", "category", "version", "epoch", "owner", "head_hash")
STREAMS = Table("streams", ("id",), (*_STREAM, "parent", "parent_version"), renewed=True)
KEYS = Table("appends", ("stream", "key"), ("stream", "key", "first", "count"))
REFERENCES = Table("blob_refs", ("hash", "position"), ("hash", "position"))
TABLES = (EVENTS, BLOBS, STREAMS, KEYS, REFERENCES)


class LogRows(Protocol):
    """The tables of a log, on one connection. Statements have question marks for values."""

    @property
    def name(self) -> str:
        """The log's URL, for messages."""

    def one_moment(self) -> AbstractContextManager[None]:
        """Let all queries in the block read the state of the log at one moment."""

    def changing(self) -> AbstractContextManager[None]:
        """Open a transaction during which no other process appends."""

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run *statement* for each of *rows*."""

    def finish(self) -> None:
        """Let the ids of new streams continue after the highest copied id."""

    def close(self) -> None:
        """Close the connection."""


class CopyStep(NamedTuple):
    """The progress of a copy."""

    what: str
    """The table of which rows are copied, or `compared`."""
    done: int
    of: int


def unfinished(log_id: str) -> str | None:
    """Return the reason why a log with this id cannot be opened; None if it can be opened."""
    if not log_id.startswith(_UNFINISHED):
        return None
    return "it is an unfinished copy; run the same `cueline log copy` again"


def copy_rows(source: LogRows, target: LogRows, *, growing: bool = False) -> Iterator[CopyStep]:
    """Copy the log as it is at one moment, a transaction for each step.

    Raises:
        LogUnavailableError: the target has other content, or a process appends to it, or to the
        source, unless that may be *growing*.
    """
    with source.one_moment():
        [(log_id, created_us)] = source.ask(_ID)
        begun = _beginning(source, target, log_id)
        marks = ((_UNFINISHED + log_id, created_us),)
        with target.changing():
            target.change("UPDATE meta SET log_id = ?, created_us = ?", marks)
        yield from _copy_events(source, target, begun)
        for table in (STREAMS, KEYS, BLOBS, REFERENCES):
            yield from _copy_table(source, target, table)
        with target.changing():
            if begun:
                _follow_deletions(source, target)
            target.finish()
        yield from _compare(source, target)
    if not growing:
        _refuse_growth(source, target)


def finish_copy(target: LogRows) -> None:
    """Give the copy the id of its log, so that it can be opened."""
    [(marked, _)] = target.ask(_ID)
    with target.changing():
        target.change("UPDATE meta SET log_id = ?", [(marked.removeprefix(_UNFINISHED),)])


def _beginning(source: LogRows, target: LogRows, log_id: str) -> int:
    """Return the position up to which the target is a copy already."""
    [(there, _)] = target.ask(_ID)
    [(last,)] = target.ask(_LAST)
    [(newest,)] = source.ask(_LAST)
    if there not in (log_id, _UNFINISHED + log_id):
        [(streams,)] = target.ask("SELECT count(*) FROM streams")
        if last or streams:
            raise LogUnavailableError(
                target.name, f"it is another log than {source.name}; copy into one without events"
            )
    if last > newest or target.ask(_HASH, (last,)) != source.ask(_HASH, (last,)):
        raise LogUnavailableError(
            target.name,
            f"it has gone on by itself: its event {last} is not one of {source.name}; "
            "copy into a log without events",
        )
    return int(last)


def _copy_events(source: LogRows, target: LogRows, after: int) -> Iterator[CopyStep]:
    [(newest,)] = source.ask(_LAST)
    yield CopyStep("events", after, newest)
    while rows := _page(source, EVENTS, (after,)):
        with target.changing():
            if target.ask(_LAST) != [(after,)]:
                raise LogUnavailableError(
                    target.name, "somebody else appends to it; end that process, and copy again"
                )
            target.change(EVENTS.insert(EVENTS.columns), rows)
        after = rows[-1][0]
        yield CopyStep("events", after, newest)


def _copy_table(source: LogRows, target: LogRows, table: Table) -> Iterator[CopyStep]:
    [(of,)] = source.ask(f"SELECT count(*) FROM {table.name}")  # noqa: S608 - our own names
    done = 0
    after: Sequence[object] | None = None
    # The content of blobs may be large, so blobs are read one by one.
    shown = table._replace(columns=("hash",)) if table is BLOBS else table
    while rows := _page(source, shown, after):
        with target.changing():
            if table is BLOBS:
                for row in rows:
                    if not target.ask("SELECT 1 FROM blobs WHERE hash = ?", row):
                        target.change(BLOBS.insert(BLOBS.columns), source.ask(_BLOB, row))
            else:
                target.change(table.insert(table.columns), rows)
        after = [rows[-1][table.columns.index(name)] for name in table.key]
        done += len(rows)
        yield CopyStep(table.name, done, of)


def _page(rows: LogRows, table: Table, after: Sequence[object] | None) -> list[tuple[Any, ...]]:
    key, marks = ", ".join(table.key), ", ".join("?" * len(table.key))
    where = "" if after is None else f"WHERE ({key}) > ({marks}) "
    return rows.ask(
        f"SELECT {', '.join(table.columns)} FROM {table.name} {where}ORDER BY {key} LIMIT {PAGE}",  # noqa: S608 - our own names
        after or (),
    )


def _follow_deletions(source: LogRows, target: LogRows) -> None:
    """Empty the events that the source has emptied since they were copied, and drop their blobs."""
    emptied = set(source.ask(_EMPTIED)) - set(target.ask(_EMPTIED))
    target.change(_EMPTY, sorted(emptied))
    target.change(_UNREFER, sorted(emptied))
    gone = [row for row in target.ask(_LOOSE) if not source.ask(_BLOB, row)]
    target.change(_DROP, gone)


def _compare(source: LogRows, target: LogRows) -> Iterator[CopyStep]:
    """Compare the number of rows of all tables, and the hash of each event."""
    for table in TABLES:
        counted = f"SELECT count(*) FROM {table.name}"  # noqa: S608 - our own names
        [(wanted,)], [(found,)] = source.ask(counted), target.ask(counted)
        if wanted != found:
            raise LogUnavailableError(
                target.name, f"it has {found} {table.name}, and {source.name} has {wanted}"
            )
    [(newest,)] = source.ask(_LAST)
    compared = Table("events", ("position",), ("position", "stream", "version", "hash"))
    after = 0
    while rows := _page(source, compared, (after,)):
        if rows != _page(target, compared, (after,)):
            raise LogUnavailableError(
                target.name, f"an event after position {after} is not that of {source.name}"
            )
        after = rows[-1][0]
        yield CopyStep("compared", after, newest)


def _refuse_growth(source: LogRows, target: LogRows) -> None:
    [(newest,)], [(copied,)] = source.ask(_LAST), target.ask(_LAST)
    if newest != copied:
        raise LogUnavailableError(
            source.name,
            f"{newest - copied} events came while it was copied; end what writes to it, and run "
            "the copy again: it goes on from there",
        )
