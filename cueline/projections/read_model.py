"""Rows of read models, and the dataclasses that describe them.

A read model is a frozen dataclass: its fields are the columns of its table. A query returns
instances of it, or of another dataclass whose fields declare how they are read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime
from decimal import Decimal
from functools import cache
from sqlite3 import Connection
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    NewType,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
)

from cueline.errors import LogUnavailableError
from cueline.events.store import from_us
from cueline.events.stream import shown
from cueline.sqlite_library import sqlite_library

Names = tuple[str, ...]
Id = NewType("Id", str)
"""The id of a session; its column has the session's stream."""


class ReadModel(Protocol):
    """A dataclass whose fields are columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    TABLE: ClassVar[str]
    KEY: ClassVar[Names]
    INDEXES: ClassVar[tuple[Names, ...]]


class Result(Protocol):
    """A dataclass whose fields can be read from a table."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    TABLE: ClassVar[str]


M = TypeVar("M", bound=Result)
Row = dict[str, Any]

_STORED: dict[object, type] = {datetime: int, Decimal: str, Id: str, Mapping: str}
_LOADED: dict[object, Callable[[Any], Any]] = {
    datetime: from_us,
    Decimal: Decimal,
    Id: shown,
    Mapping: json.loads,
    bool: bool,  # SQLite has 0 and 1
}
_SQLITE_TYPES: dict[object, str] = {
    int: "INTEGER",
    bool: "INTEGER",
    str: "TEXT",
    float: "REAL",
    int | None: "INTEGER",
    str | None: "TEXT",
}
_BLANK: dict[object, object] = {
    int: 0,
    float: 0.0,
    bool: False,
    datetime: 0,
    Decimal: "0",
    Mapping: "{}",
}


class Read(NamedTuple):
    """How a field is read from the table; a field without a column name is no column."""

    sql: str = ""
    """An expression of the table's columns; empty: the field is not read."""
    column: str = ""
    """The name of its column, if it is one."""
    kind: type | None = None
    """The type of the stored value, if it differs from the field's."""
    blank: object = None
    """The value in a new row, if it is not the default of the type."""
    load: Callable[[Any], Any] | None = None
    """A function that converts the read value."""


class Column(NamedTuple):
    """A field of a dataclass, and its column."""

    field: str
    name: str
    """A time ends in `_us`, and JSON in `_json`; empty: the field is no column."""
    kind: object
    """The type of the stored value, perhaps `| None`."""
    blank: object
    """The value in a new row."""
    sql: str
    """The expression that reads the field; empty: it is not read."""
    load: Callable[[Any], Any] | None


@cache
def columns_of(model: type[Result]) -> tuple[Column, ...]:
    """Return the columns of *model*, in order."""
    return tuple(_column(model.TABLE, each) for each in fields(model))


@cache
def columns(model: type[Result]) -> Names:
    """Return the names of the columns of *model*, in order."""
    return tuple(each.name for each in columns_of(model) if each.name)


def _column(table: str, field: Any) -> Column:
    annotated = get_origin(field.type) is Annotated
    type_, how = get_args(field.type) if annotated else (field.type, None)
    optional = NoneType in get_args(type_)
    kind = get_args(type_)[0] if optional else type_
    kind = get_origin(kind) or kind
    endings = {datetime: f"{field.name.removesuffix('_at')}_us", Mapping: f"{field.name}_json"}
    name = endings.get(kind, field.name)
    how = how or Read(f"{table}.{name}", name)
    stored: Any = how.kind or _STORED.get(kind, kind)
    blank = _BLANK.get(kind, "") if field.default is MISSING else field.default
    if optional and how.kind is None:
        stored, blank = stored | None, None
    elif how.blank is not None or how.kind is not None:
        blank = how.blank or ""
    return Column(field.name, how.column, stored, blank, how.sql, how.load or _LOADED.get(kind))


def create(db: Connection, model: type[ReadModel]) -> None:
    """Create the table of *model*, and its indexes."""
    table, *indexes = statements(model, _SQLITE_TYPES)
    for statement in (f"{table} STRICT", *indexes):
        db.execute(statement)


def statements(
    model: type[ReadModel], types: Mapping[object, str], table: str = "TABLE"
) -> Iterator[str]:
    """Yield the SQL that creates the table of *model* with these *types*, and its indexes."""
    lines = [
        f"{each.name} {types[each.kind]}{'' if 'None' in str(each.kind) else ' NOT NULL'}"
        for each in columns_of(model)
        if each.name
    ]
    lines.append(f"PRIMARY KEY ({', '.join(model.KEY)})")
    yield f"CREATE {table} {model.TABLE} ({', '.join(lines)})"
    yield from index_statements(model)


def index_statements(model: type[ReadModel]) -> Iterator[str]:
    """Yield the SQL that creates the indexes of *model*."""
    for index in model.INDEXES:
        name = "_".join(("idx", model.TABLE, *index))
        yield f"CREATE INDEX {name} ON {model.TABLE} ({', '.join(index)})"


LARGEST = 2**63 - 1
"""The largest integer of databases."""


def select(
    db: Connection,
    model: type[M],
    where: str,
    parameters: Sequence[object] = (),
    limit: int = LARGEST,
) -> list[M]:
    """Return the matching rows; raises as `ask` does."""
    wanted = [each for each in columns_of(model) if each.sql]
    sql = f"SELECT {', '.join(each.sql for each in wanted)} FROM {model.TABLE} {where} LIMIT ?"  # noqa: S608 - constants only
    found = ask(db, model.TABLE, sql, [*parameters, min(limit, LARGEST)])
    return [
        model(
            **{
                each.field: value if value is None or each.load is None else each.load(value)
                for each, value in zip(wanted, row, strict=True)
            }
        )
        for row in found
    ]


def ask(
    db: Connection, table: str, sql: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows that *sql* finds in *table*.

    Raises:
        LogUnavailableError: the file is damaged; the message says what to do.
    """
    try:
        return list(db.execute(sql, parameters).fetchall())
    except sqlite_library().DatabaseError as error:
        reason = f"{error}; delete their file beside the log, it is filled again"
        raise LogUnavailableError(f"the {table} read model", reason) from error


@cache
def _blank_row(model: type[ReadModel]) -> Row:
    return {each.name: each.blank for each in columns_of(model) if each.name}


def new_row(model: type[ReadModel], /, **known: object) -> Row:
    """Return a new row of *model* with the *known* values by column."""
    return _blank_row(model) | known


def matching(asked: Iterable[tuple[str, object]]) -> tuple[str, list[object]]:
    """Return the SQL condition and parameters of pairs of SQL and value; None matches all.

    A tuple is several values.
    """
    given = [(sql, value) for sql, value in asked if value is not None]
    where = f"WHERE {' AND '.join(sql for sql, _ in given)}" if given else ""
    values: list[object] = []
    for _, value in given:
        values += value if isinstance(value, tuple) else (value,)
    return where, values


def after(place: tuple[int, str] | None) -> tuple[str, object]:
    """Return the condition for the rows after *place*: their time of change, and stream."""
    values = None if place is None else (place[0], *place)
    return "(updated_us < ? OR updated_us = ? AND stream > ?)", values


class Rows:
    """The rows of one read model that a batch of events changes."""

    def __init__(self, db: Connection, model: type[ReadModel]) -> None:
        self._db = db
        self._key = model.KEY
        self._names = columns(model)
        named, marks = ", ".join(self._names), ", ".join("?" * len(self._names))
        fits = " AND ".join(f"{name} = ?" for name in self._key)
        changed = ", ".join(f"{n} = excluded.{n}" for n in self._names if n not in self._key)
        self._find = f"SELECT {named} FROM {model.TABLE} WHERE {fits}"  # noqa: S608 - as above
        # An upsert keeps a row's place, so the file does not depend on the sizes of batches.
        self._put = (
            f"INSERT INTO {model.TABLE} ({named}) VALUES ({marks}) "  # noqa: S608 - as above
            f"ON CONFLICT ({', '.join(self._key)}) DO UPDATE SET {changed}"
        )
        self._held: dict[tuple[object, ...], Row] = {}

    def find(self, *key: object) -> Row | None:
        """Return the row of *key*, to be changed in place."""
        held = self._held.get(key)
        if held is None:
            found = self._db.execute(self._find, key).fetchone()
            if found is not None:
                held = self._held[key] = dict(zip(self._names, found, strict=True))
        return held

    def add(self, row: Row) -> Row:
        """Add a new row."""
        self._held[tuple(row[name] for name in self._key)] = row
        return row

    def held(self) -> list[Row]:
        """Return the rows found or added since the last flush."""
        return list(self._held.values())

    def flush(self) -> None:
        """Write these rows."""
        rows = [tuple(map(row.__getitem__, self._names)) for row in self._held.values()]
        self._db.executemany(self._put, rows)
        self._held.clear()


class AppendOnlyRows:
    """The rows of a read model that only grows."""

    def __init__(self, db: Connection, model: type[ReadModel]) -> None:
        self._db = db
        marks = ", ".join("?" * len(columns(model)))
        self._put = f"INSERT INTO {model.TABLE} VALUES ({marks})"  # noqa: S608 - as above
        self._held: list[tuple[object, ...]] = []
        self.add = self._held.append

    def flush(self) -> None:
        """Write the new rows."""
        self._db.executemany(self._put, self._held)
        self._held.clear()
