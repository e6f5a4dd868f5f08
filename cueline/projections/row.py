"""Rows of read models, and the dataclasses that describe them.

A read model is a frozen dataclass: its fields are the columns of its table, and the
result of a query.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

from sqlite_utils import Database
from sqlite_utils.db import sqlite3  # type: ignore[attr-defined]  # the library that it chose

from cueline.errors import LogUnavailableError

Names = tuple[str, ...]


class ReadModel(Protocol):
    """A dataclass whose fields are columns."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    TABLE: ClassVar[str]
    KEY: ClassVar[Names]
    INDEXES: ClassVar[tuple[Names, ...]]


M = TypeVar("M", bound=ReadModel)
Row = dict[str, Any]


@cache
def columns(model: type[ReadModel]) -> Names:
    """Return the columns of *model*, in order."""
    return tuple(field.name for field in fields(model))


def create(db: Database, model: type[ReadModel]) -> None:
    """Create the table of *model*, and its indexes."""
    kept_as = {int: int, bool: int, str: str, float: float, int | None: int, str | None: str}
    typed = {name: kept_as[kind] for name, kind in typed_fields(model)}  # type: ignore[index]  # a column is one of these
    optional = {name for name, kind in typed_fields(model) if "None" in str(kind)}
    table = db.table(model.TABLE)
    table.create(typed, pk=model.KEY, not_null=typed.keys() - optional, strict=True)
    for index in model.INDEXES:
        table.create_index(index)


def typed_fields(model: type[ReadModel]) -> Iterator[tuple[str, object]]:
    """Yield name and type of each column."""
    return ((field.name, field.type) for field in fields(model))


LARGEST = 2**63 - 1
"""Databases count no further."""


def select(
    db: Database,
    model: type[M],
    where: str,
    parameters: Sequence[object] = (),
    limit: int = LARGEST,
) -> list[M]:
    """Return the matching rows; raises as `ask` does."""
    wanted = ", ".join(f"{model.TABLE}.{name}" for name in columns(model))
    sql = f"SELECT {wanted} FROM {model.TABLE} {where} LIMIT ?"  # noqa: S608 - constants only
    found = ask(db, model.TABLE, sql, [*parameters, min(limit, LARGEST)])
    rows = [dict(zip(columns(model), row, strict=True)) for row in found]
    flags = [name for name, kind in typed_fields(model) if kind is bool]
    for row in rows:
        row.update({name: bool(row[name]) for name in flags})  # SQLite has 0 and 1
    return [model(**row) for row in rows]


def ask(
    db: Database, table: str, sql: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows that *sql* finds in *table*.

    Raises:
        LogUnavailableError: the file is damaged; the message says what to do.
    """
    try:
        return list(db.execute(sql, parameters).fetchall())
    except sqlite3.DatabaseError as error:
        reason = f"{error}; delete their file beside the log, it is filled again"
        raise LogUnavailableError(f"the {table} read model", reason) from error


def row_of(told: ReadModel) -> Row:
    """Return *told* as a row that can be changed."""
    return {name: getattr(told, name) for name in columns(type(told))}


def matching(asked: Iterable[tuple[str, object]]) -> tuple[str, list[object]]:
    """Return the SQL condition and parameters of pairs of SQL and value; None matches all."""
    given = [(sql, value) for sql, value in asked if value is not None]
    where = f"WHERE {' AND '.join(sql for sql, _ in given)}" if given else ""
    return where, [value for _, value in given]


class Rows:
    """The rows of one read model that a batch of events changes."""

    def __init__(self, db: Database, model: type[ReadModel]) -> None:
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
        self._db.conn.executemany(self._put, rows)
        self._held.clear()


class AppendOnlyRows:
    """The rows of a read model that only grows."""

    def __init__(self, db: Database, model: type[ReadModel]) -> None:
        self._db = db
        marks = ", ".join("?" * len(columns(model)))
        self._put = f"INSERT INTO {model.TABLE} VALUES ({marks})"  # noqa: S608 - as above
        self._held: list[tuple[object, ...]] = []
        self.add = self._held.append

    def flush(self) -> None:
        """Write the new rows."""
        self._db.conn.executemany(self._put, self._held)
        self._held.clear()
