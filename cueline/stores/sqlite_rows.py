"""The tables of a log in a SQLite file, row by row."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cueline.stores.sqlite_file import LogFile, retry_while_busy
from cueline.stores.sqlite_library import sqlite_library


class SqliteRows:
    """See `LogRows`."""

    def __init__(self, file: LogFile, *, to_write: bool) -> None:
        self.name = str(file.path)
        self._file = file
        self._db: sqlite3.Connection = file.writer() if to_write else file.reader()
        if to_write:
            # What is emptied is overwritten, as by an append.
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
        """See `LogRows.finish`: SQLite does so by itself."""

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
