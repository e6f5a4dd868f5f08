"""Runs a query of a user on the read models in a file: it reads, and ends in time."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.projections.relations import RELATIONS
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


_NO_TABLE: Final = re.compile(r'no such table: (\S+)|relation "(.+)" does not exist')
_NO_COLUMN: Final = re.compile("no such column|column .* does not exist")
_SHOW_COLUMNS: Final = "`SELECT * FROM TABLE LIMIT 1` shows the columns of a table"
_MORE: Final = re.compile("not authorized$|authorization denied|one statement|multiple commands")
"""How the libraries say that a query is not one that only reads."""


def refused(why: object) -> ConfigError:
    """Return the error of a query that is not run; it says what can be asked."""
    said = str(why).rstrip(".")
    if (table := _NO_TABLE.match(said)) is not None:
        name = table[1] or table[2]
        said = f"there is no table {name!r}{known_instead(name, RELATIONS, 'the tables are')}"
    elif _NO_COLUMN.search(said):
        said = f"{said}; {_SHOW_COLUMNS}"
    elif _MORE.search(said):
        said = f"it is not one query that only reads ({said}); ask one SELECT"
    return ConfigError("sql", said)


def took_too_long() -> ConfigError:
    """Return the error of a query that was ended."""
    return refused(f"it took more than {SECONDS:g} s; ask for less")


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
            raise (took_too_long() if monotonic() > deadline else refused(error)) from None
        if cursor.description is None:
            raise refused("it asks for nothing; ask one SELECT")
        return Found(tuple(each[0] for each in cursor.description), rows)


def _judge(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Return whether SQLite may do *action* in a query."""
    # FTS5 asks whether its tables have changed.
    own = action == sqlite3.SQLITE_PRAGMA and first == "data_version"
    called = action == sqlite3.SQLITE_FUNCTION and second in _REFUSED
    return sqlite3.SQLITE_OK if own or (action in _READS and not called) else sqlite3.SQLITE_DENY
