"""Creates the tables of a log in PostgreSQL, and grants rights to roles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import psycopg
from psycopg import sql

from cueline.errors import LogFormatError, LogUnavailableError
from cueline.stores.postgres.connections import Row, connected
from cueline.stores.postgres.place import Place

FORMAT: Final = 1
"""The format of the tables. `migrate` upgrades an older format; a newer one is refused."""
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


def migrate(place: Place, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
    """Create the log at *place*, or upgrade it; return whether anything was changed.

    The roles *writers* may then read, and write through the functions alone; *readers* may
    read. The role that migrates owns the tables.

    Raises:
        LogUnavailableError: the migration is not possible; the message says why.
        LogFormatError: a newer cueline wrote it.
    """
    # This imports all read models, which users of only the log do not need.
    from cueline.stores.postgres.views import make_views, views_schema  # noqa: PLC0415

    views = views_schema(place)
    with connected(place) as db, db.transaction():
        if (row := db.execute(_ENCODING).fetchone()) != ("UTF8",):
            reason = f"the database's encoding is {row and row[0]}; make one with UTF8"
            raise LogUnavailableError(place.name, reason)
        db.execute(_LOCK)
        found = _format(db, place)
        if found > FORMAT:
            raise LogFormatError(place.name, found, FORMAT)
        for name in (place.schema, place.beside):
            db.execute(_of("CREATE SCHEMA IF NOT EXISTS {}", name))
        for log, beside in _SCRIPTS[found:]:
            _run(db, place.schema, log)
            _run(db, place.beside, beside)
        make_views(db, place)
        db.execute(_of("SET LOCAL search_path = {}, pg_temp", place.schema))
        if found < FORMAT:
            db.execute(_BEGUN, (FORMAT, str(uuid4())))
        _revoke(db, place, views)
        for role in readers:
            _grant_reading(db, place, views, role)
        for role in writers:
            _grant_writing(db, place, views, role)
    return found < FORMAT


def _format(db: psycopg.Connection[Row], place: Place) -> int:
    if db.execute(_HERE, (f"{place.schema}.meta",)).fetchone() == (False,):
        return 0
    row = db.execute(_of(_META, place.schema)).fetchone()
    return int(row[0]) if row else 0


def _run(db: psycopg.Connection[Row], schema: str, script: str) -> None:
    # Functions keep this search path, so no other schema can replace the functions that they call.
    db.execute(_of("SET LOCAL search_path = {}, pg_temp", schema))
    db.execute(Path(__file__).with_name(script).read_bytes())


def _revoke(db: psycopg.Connection[Row], place: Place, views: str) -> None:
    for name in (place.schema, place.beside, views):
        for what in ("SCHEMA {}", "ALL TABLES IN SCHEMA {}", "ALL FUNCTIONS IN SCHEMA {}"):
            db.execute(_of(f"REVOKE ALL ON {what} FROM PUBLIC", name))


def _grant_reading(db: psycopg.Connection[Row], place: Place, views: str, role: str) -> None:
    db.execute(_of("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {} TO {}", views, role))
    for name in (place.schema, place.beside, views):
        db.execute(_of("GRANT USAGE ON SCHEMA {} TO {}", name, role))
        db.execute(_of("GRANT SELECT ON ALL TABLES IN SCHEMA {} TO {}", name, role))
    # The view `present` leaves out the columns that readers must not see.
    db.execute(_of("REVOKE ALL ON {}.presence FROM {}", place.beside, role))


def _grant_writing(db: psycopg.Connection[Row], place: Place, views: str, role: str) -> None:
    _grant_reading(db, place, views, role)
    for function in _WRITES:
        db.execute(_of("GRANT EXECUTE ON FUNCTION {}.{} TO {}", place.schema, function, role))
    grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO {}"
    db.execute(_of(grant, place.beside, role))
    db.execute(_of("GRANT ALL ON ALL TABLES IN SCHEMA {} TO {}", views, role))


def _of(statement: str, *names: str) -> sql.Composed:
    return sql.SQL(statement).format(*map(sql.Identifier, names))
