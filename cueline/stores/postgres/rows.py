"""The tables of a log in PostgreSQL, row by row."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from cueline.stores.postgres.connections import Row, connect_for_commands
from cueline.stores.postgres.failure import translating
from cueline.stores.postgres.place import Place
from cueline.stores.postgres.text import escaped_values, marked, unescaped_row

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
        with translating(self._place):
            self._db: psycopg.Connection[Row] = connect_for_commands(place)

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        with translating(self._place), self._db.transaction():
            self._db.execute(_MOMENT)
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with translating(self._place), self._db.transaction():
            self._db.execute(_LOCK)
            yield

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with translating(self._place):
            cursor = self._db.execute(marked(statement), escaped_values(values), binary=True)
            return list(map(unescaped_row, cursor))

    def change(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with translating(self._place), self._db.cursor() as cursor:
            cursor.executemany(marked(statement), map(escaped_values, rows))

    def finish(self) -> None:
        with translating(self._place):
            self._db.execute(_CONTINUE)

    def close(self) -> None:
        self._db.close()
