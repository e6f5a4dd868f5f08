"""The tables of a log in PostgreSQL, row by row."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from cueline.stores.postgres.connections import Row, connect_for_commands
from cueline.stores.postgres.failure import translated
from cueline.stores.postgres.place import Place
from cueline.stores.postgres.text import escaped, unescaped

_MOMENT = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_LOCK = b"SELECT pg_advisory_xact_lock((4243::bigint << 32) + 'events'::regclass::oid::bigint)"
_CONTINUE = b"""
SELECT setval(pg_get_serial_sequence('streams', 'id'), max(id)) FROM streams HAVING count(*) > 0
"""


class PostgresRows:
    """See `LogRows`; to write takes the rights of the tables' owner."""

    def __init__(self, place: Place) -> None:
        self.name = place.name
        self._place = place
        with self._translated():
            self._db: psycopg.Connection[Row] = connect_for_commands(place)

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with self._translated(), self._db.transaction():
            self._db.execute(_MOMENT)
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._translated(), self._db.transaction():
            self._db.execute(_LOCK)
            yield

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._translated():
            cursor = self._db.execute(_marked(statement), _escaped(values), binary=True)
            return [tuple(map(_as_it_was, row)) for row in cursor]

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._translated(), self._db.cursor() as cursor:
            cursor.executemany(_marked(statement), map(_escaped, rows))

    def finish(self) -> None:
        with self._translated():
            self._db.execute(_CONTINUE)

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise translated(error, self._place) from error


def _marked(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


def _escaped(values: Sequence[object]) -> list[object]:
    return [escaped(value) if isinstance(value, str) else value for value in values]


def _as_it_was(value: Any) -> Any:
    return unescaped(value) if isinstance(value, str) else value
