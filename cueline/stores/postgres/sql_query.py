"""Runs a query of a user on the read models in PostgreSQL: it reads them only, and ends in time."""

import json
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any, Final, cast

import psycopg
from psycopg import sql

from cueline.projections.sql_query import SECONDS, Found, first_rows, refused, took_too_long
from cueline.stores.postgres.connections import Row
from cueline.stores.postgres.sql import unescaped

_CALL: Final = re.compile(r"""(?<![\w."])([\w."]+)\(""")
_MOST: Final = 2**31 - 1
"""The most rows that a cursor can be asked for."""
_BAD: Final = """
SELECT proname FROM pg_proc
WHERE proname = ANY(%s) AND pronamespace <> current_schema()::regnamespace
    AND (provolatile = 'v' OR proname ~ '_to_xml|^pg_|^lo_|^ts_|setting|^query_')
"""


def query_server(db: psycopg.Connection[Row], query: str, limit: int) -> Found:
    """Return the first rows of *query* on *db*, whose search path is the schema of the read models.

    Raises:
        ConfigError: see `query_file`; or it reads other tables.
    """
    try:
        db.execute("BEGIN READ ONLY")
        db.execute(f"SET LOCAL statement_timeout = {SECONDS * 1000:.0f}")
        _check(db, query)
        # A cursor runs nothing but a query. In the binary form there is one statement only.
        cursor = db.execute(f"DECLARE asked CURSOR FOR {query}".encode(), binary=True)
        cursor.execute("FETCH 0 FROM asked")
        columns = tuple(each.name for each in cursor.description or ())
        fetch = sql.SQL("FETCH {} FROM asked").format(min(limit, _MOST))
        stream = cast("Generator[Row]", cursor.stream(fetch))
        with closing(stream) as rows:  # while it is open, nothing else runs on the connection
            return Found(columns, first_rows((tuple(map(_plain, row)) for row in rows), limit))
    except psycopg.errors.QueryCanceled:
        raise took_too_long() from None
    except psycopg.Error as error:
        raise refused(error.diag.message_primary or error) from None
    except OverflowError as error:
        raise refused(error) from None
    finally:
        db.rollback()


def _check(db: psycopg.Connection[Row], query: str) -> None:
    """Refuse a query that reads other tables, or calls what does more than to compute."""
    asked = f"EXPLAIN (VERBOSE, FORMAT JSON) {query}"
    ((plan,),) = db.execute(asked.encode(), binary=True).fetchall()
    plan = plan if isinstance(plan, list) else json.loads(str(plan))
    row = db.execute("SELECT current_schema()").fetchone()
    assert row is not None
    for node in _nodes(plan):
        table = node.get("Relation Name")
        if table is not None and node.get("Schema") != row[0]:
            raise refused(f"{table} is no read model")
    names = _CALL.findall(json.dumps(plan).replace('\\"', '"'))
    if away := [each for each in names if "." in each and not each.startswith(str(row[0]))]:
        raise refused(f"it calls {away[0]}")
    plain = [each.rpartition(".")[2].strip('"') for each in names]
    for (bad,) in db.execute(_BAD.encode(), (plain,)):
        raise refused(f"it calls {bad}")


def _nodes(plan: Any) -> Iterator[dict[str, Any]]:
    if isinstance(plan, dict):
        yield plan
    for each in plan.values() if isinstance(plan, dict) else plan if isinstance(plan, list) else ():
        yield from _nodes(each)


def _plain(value: object) -> object:
    """Return *value* as SQLite has it."""
    match value:
        case str():
            return unescaped(value)
        case bool():
            return int(value)
        case Decimal():
            whole = value.is_finite() and value == int(value)
            return int(value) if whole else float(value)
        case list() | dict():
            return json.dumps(value)
        case int() | float() | bytes() | None:
            return value
    return str(value)
