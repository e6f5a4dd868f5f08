"""The read models of a log in PostgreSQL, which all machines share.

The queries are those of SQLite; `views.sql` and the few translations here are the only
differences.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from sqlite3 import Connection
from time import monotonic
from typing import Final, cast

import psycopg
from psycopg import sql

from cueline.errors import LogUnavailableError
from cueline.projections.read_model import statements
from cueline.projections.relations import VIEWS
from cueline.projections.sql_query import Found as UserFound
from cueline.projections.views import (
    MODELS,
    PATIENCE_SECONDS,
    RETRY_SECONDS,
    VERSION,
    Checkpoint,
    Views,
)
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.connections import Row
from cueline.stores.postgres.sql import escaped_values, marked, translating, unescaped_row
from cueline.stores.postgres.sql_query import query_server
from cueline.stores.waiting import pause

_TYPES: Final[dict[object, str]] = {
    int: "bigint",
    bool: "boolean",
    str: 'text COLLATE "C"',
    float: "double precision",
    int | None: "bigint",
    str | None: 'text COLLATE "C"',
}
_MAY_WRITE = """
SELECT CASE WHEN to_regclass('checkpoint') IS NULL THEN false
    ELSE has_table_privilege('checkpoint', 'INSERT') END
"""
_LOCK = "SELECT pg_try_advisory_xact_lock(4245, hashtext(current_schema()))"
_CHECKPOINT = "SELECT position, hash FROM checkpoint"
_BEGUN = "INSERT INTO checkpoint SELECT 0, '' WHERE NOT EXISTS (SELECT FROM checkpoint)"


class Found(list[Row]):
    """The rows of a query, like a cursor's."""

    def fetchone(self) -> Row | None:
        """Return the first row; None if no row was found."""
        return self[0] if self else None

    def fetchall(self) -> list[Row]:
        """Return all rows."""
        return self


class ViewsDatabase:
    """Like a connection to SQLite, as far as queries and projector use one."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._db: psycopg.Connection[Row] | None = None

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> Found:
        """Run a statement in SQLite's dialect."""
        with translating(self._address):
            cursor = self._connected().execute(marked(statement), escaped_values(parameters))
            if cursor.description is None:
                return Found()
            return Found(map(unescaped_row, cursor))

    def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each of *rows*."""
        with translating(self._address), self._connected().cursor() as cursor:
            cursor.executemany(marked(statement), map(escaped_values, rows))

    def rollback(self) -> None:
        """Roll back, if the connection still works."""
        with suppress(psycopg.Error):
            self._connected().rollback()

    def query(self, query: str, limit: int) -> UserFound:
        """See `query_server`."""
        return query_server(self._connected(), query, limit)

    def close(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.close()

    def _connected(self) -> psycopg.Connection[Row]:
        if self._db is None or self._db.closed:
            self._db = psycopg.Connection.connect(self._address.conninfo, autocommit=True)
            path = sql.Identifier(views_schema(self._address))
            self._db.execute(sql.SQL("SET search_path = {}").format(path))
            # After any loss, the read models are filled again from the log.
            self._db.execute("SET synchronous_commit = off")
        return self._db


class PostgresViews(Views):
    """The read models in the log's database. One process at a time projects."""

    def __init__(self, address: Address) -> None:
        self.path = Path(views_schema(address))
        self._half_renewed = False
        self._tables = ViewsDatabase(address)
        self.db = cast("Connection", self._tables)

    @property
    def may_write(self) -> bool:
        """Whether the tables exist, and this role may fill them."""
        return bool(self._tables.execute(_MAY_WRITE)[0][0])

    @property
    def schema(self) -> str:
        """See `Views.schema`."""
        return str(self.path)

    @property
    def checkpoint(self) -> Checkpoint:
        """See `Views.checkpoint`; after a crash of the server the tables are empty."""
        found = self._tables.execute(_CHECKPOINT).fetchone()
        return Checkpoint(*found) if found else Checkpoint()

    async def query(self, query: str, limit: int) -> UserFound:
        """See `Views.query`."""
        return await asyncio.to_thread(self._tables.query, query, limit)

    async def clear(self) -> None:
        """See `Views.clear`."""
        await self._begin()
        with self._committed():
            for model in MODELS:
                self._tables.execute(f"TRUNCATE {model.TABLE}")
            self._tables.execute("TRUNCATE words")
            self._tables.execute("UPDATE checkpoint SET position = 0, hash = ''")

    async def _begin_fill(self) -> None:
        """Do nothing: readers use the indexes meanwhile."""

    async def _end_fill(self) -> None:
        """Do nothing."""

    async def _begin(self) -> None:
        deadline = monotonic() + PATIENCE_SECONDS
        while not self._begun():
            if monotonic() > deadline:
                raise LogUnavailableError(str(self.path), "another process keeps it locked")
            await pause(RETRY_SECONDS)

    def _begun(self) -> bool:
        """Begin a transaction, unless another process projects."""
        self._tables.execute("BEGIN")
        try:
            if self._tables.execute(_LOCK)[0][0]:
                self._tables.execute(_BEGUN)
                return True
        except BaseException:
            self._tables.rollback()
            raise
        self._tables.execute("ROLLBACK")
        return False

    @contextmanager
    def _committed(self) -> Iterator[None]:
        try:
            yield
            self._tables.execute("COMMIT")
        except BaseException:
            self._tables.rollback()
            raise


def views_schema(address: Address) -> str:
    """Return the schema of the read models; each version of their tables has its own."""
    return f"{address.schema}_views{VERSION}"


def make_views(db: psycopg.Connection[Row], address: Address) -> None:
    """Create the missing tables of the read models."""
    schema = views_schema(address)
    if db.execute("SELECT to_regnamespace(%s) IS NOT NULL", (schema,)).fetchone() == (True,):
        return
    db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    db.execute(sql.SQL("SET LOCAL search_path = {}, pg_temp").format(sql.Identifier(schema)))
    db.execute(Path(__file__).with_name("views.sql").read_bytes())
    for model in MODELS:
        for statement in statements(model, _TYPES, "UNLOGGED TABLE"):
            db.execute(statement.encode())
    for name, query in VIEWS.items():
        db.execute(f"CREATE VIEW {name} AS {query}".encode())
