"""Runs a query of a user on the read models in a file: it reads, and ends in time."""

import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from cueline.errors import ConfigError
from cueline.sqlite_library import sqlite_library

SECONDS: Final = 10.0
"""The longest time of a query."""
_STEPS: Final = 10_000
"""The steps of SQLite between two looks at the clock."""
_BYTES: Final = 10_000_000
"""The longest text that a query may make, if the library can limit it."""
_READS: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_REFUSED: Final = frozenset({"load_extension", "zeroblob", "randomblob", "printf", "format"})
"""Functions that load code, or fill the memory with one call."""


class Found(NamedTuple):
    """The answer to a query."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def refused(why: object) -> ConfigError:
    """Return the error of a query that is not run."""
    return ConfigError("sql", f"{why}; one SELECT can be asked, for {SECONDS:.0f} s")


def query_file(path: Path, query: str, limit: int) -> Found:
    """Return the first rows of *query*.

    Raises:
        ConfigError: it is no query, it does more than to read, or it takes too long.
    """
    library = sqlite_library()
    address = f"{path.absolute().as_uri()}?mode=ro"
    with closing(library.connect(address, uri=True, isolation_level=None)) as db:
        db.execute("PRAGMA query_only = ON")
        if hasattr(db, "setlimit"):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _BYTES)
        deadline = monotonic() + SECONDS
        db.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        db.set_authorizer(_judge)
        try:
            cursor = db.execute(query)
            rows = cursor.fetchmany(limit)
        except (library.Error, library.Warning) as error:
            raise refused(
                f"it took too long, {error}" if monotonic() > deadline else error
            ) from None
        if cursor.description is None:
            raise refused("it asks for nothing")
        return Found(tuple(each[0] for each in cursor.description), rows)


def _judge(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Return whether SQLite may do *action* in a query."""
    # FTS5 asks whether its tables have changed.
    own = action == sqlite3.SQLITE_PRAGMA and first == "data_version"
    called = action == sqlite3.SQLITE_FUNCTION and second in _REFUSED
    return sqlite3.SQLITE_OK if own or (action in _READS and not called) else sqlite3.SQLITE_DENY
