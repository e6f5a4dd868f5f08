"""Creates the tables of a log in PostgreSQL, and grants rights to roles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import psycopg
from psycopg import sql

from cueline.errors import LogFormatError, LogUnavailableError
from cueline.stores.postgres.address import Address
from cueline.stores.postgres.connections import Row, connected

FORMAT: Final = 1
"""The format of the tables. `migrate` upgrades an older format; a newer format is refused."""
_SCRIPTS: Final = (("schema.sql", "beside.sql"),)
"""The statements that upgrade each format to the next."""
_WRITES: Final = ("append", "acquire", "put_blob", "collect_blobs")
"""The functions of writers."""
_META = "SELECT format FROM {}.meta"
_BEGUN = """
INSERT INTO meta (id, format, log_id, created_us) VALUES (1, %s, %s, now_us())
ON CONFLICT (id) DO UPDATE SET format = excluded.format
"""
_HERE = "SELECT to_regclass(%s) IS NOT NULL"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('cueline migrate'))"
_ENCODING = "SELECT current_setting('server_encoding')"


def migrate(address: Address, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
    """Create the log at *address*, or upgrade it; return whether anything was changed.

    The roles *writers* may then read, and write through the functions alone; *readers* may
    read. The role that migrates owns the tables.

    Raises:
        LogUnavailableError: the migration is not possible; the message says why.
        LogFormatError: a newer cueline wrote it.
    """
    # This imports all read models, which users of only the log do not need.
    from cueline.stores.postgres.views import make_views, views_schema  # noqa: PLC0415

    views = views_schema(address)
    with connected(address) as db, db.transaction():
        if (row := db.execute(_ENCODING).fetchone()) != ("UTF8",):
            reason = f"the database's encoding is {row and row[0]}; make one with UTF8"
            raise LogUnavailableError(address.name, reason)
        db.execute(_LOCK)
        found = _format(db, address)
        if found > FORMAT:
            raise LogFormatError(address.name, found, FORMAT)
        for name in (address.schema, address.beside):
            db.execute(_of("CREATE SCHEMA IF NOT EXISTS {}", name))
        for log, beside in _SCRIPTS[found:]:
            _run(db, address.schema, log)
            _run(db, address.beside, beside)
        make_views(db, address)
        db.execute(_of("SET LOCAL search_path = {}, pg_temp", address.schema))
        if found < FORMAT:
            db.execute(_BEGUN, (FORMAT, str(uuid4())))
        _revoke(db, address, views)
        for role in readers:
            _grant_reading(db, address, views, role)
        for role in writers:
            _grant_writing(db, address, views, role)
    return found < FORMAT


def _format(db: psycopg.Connection[Row], address: Address) -> int:
    if db.execute(_HERE, (f"{address.schema}.meta",)).fetchone() == (False,):
        return 0
    row = db.execute(_of(_META, address.schema)).fetchone()
    return int(row[0]) if row else 0


def _run(db: psycopg.Connection[Row], schema: str, script: str) -> None:
    # Functions keep this search path, so no other schema can replace the functions that they call.
    db.execute(_of("SET LOCAL search_path = {}, pg_temp", schema))
    db.execute(Path(__file__).with_name(script).read_bytes())


def _revoke(db: psycopg.Connection[Row], address: Address, views: str) -> None:
    for name in (address.schema, address.beside, views):
        for what in ("SCHEMA {}", "ALL TABLES IN SCHEMA {}", "ALL FUNCTIONS IN SCHEMA {}"):
            db.execute(_of(f"REVOKE ALL ON {what} FROM PUBLIC", name))


def _grant_reading(db: psycopg.Connection[Row], address: Address, views: str, role: str) -> None:
    db.execute(_of("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {} TO {}", views, role))
    for name in (address.schema, address.beside, views):
        db.execute(_of("GRANT USAGE ON SCHEMA {} TO {}", name, role))
        db.execute(_of("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}", name, role))
    # The view `present` leaves out the columns that readers must not see.
    db.execute(_of("REVOKE ALL ON {}.presence FROM {}", address.beside, role))


def _grant_writing(db: psycopg.Connection[Row], address: Address, views: str, role: str) -> None:
    _grant_reading(db, address, views, role)
    for function in _WRITES:
        db.execute(_of("GRANT EXECUTE ON FUNCTION {}.{} TO {}", address.schema, function, role))
    grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO {}"
    db.execute(_of(grant, address.beside, role))
    db.execute(_of("GRANT ALL ON ALL TABLES IN SCHEMA {} TO {}", views, role))


def _of(statement: str, *names: str) -> sql.Composed:
    return sql.SQL(statement).format(*map(sql.Identifier, names))
