"""Runs a query of a user on the read models in a file: it reads, and ends in time.

SQLite cannot end a call of a function, and not each build of it limits the length of a text. So
the query runs in a process of its own, which can be killed, and whose memory is limited.
"""

import asyncio
import json
import marshal
import re
import resource
import sqlite3
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.projections.relations import RELATIONS
from cueline.sqlite_library import sqlite_library

SECONDS: Final = 10.0
"""The longest time of a query."""
_START_SECONDS: Final = 5.0
"""The longest time in which the process begins, and ends by itself."""
_STEPS: Final = 10_000
"""The steps of SQLite between two looks at the clock."""
_BYTES: Final = 10_000_000
"""The longest answer."""
_MEMORY: Final = 512_000_000
"""The most memory of the process, where the system can limit it."""
_READS: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


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


def first_rows(rows: Iterable[tuple[Any, ...]], limit: int) -> list[tuple[Any, ...]]:
    """Return the first *limit* of *rows*.

    Raises:
        OverflowError: they are too long; the message says so.
    """
    found: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        if len(found) == limit:
            break
        size += sum(len(each) for each in row if isinstance(each, str | bytes))
        if size > _BYTES:
            raise OverflowError(f"the answer is longer than {_BYTES // 10**6} MB")
        found.append(row)
    return found


async def query_file(path: Path, query: str, limit: int) -> Found:
    """Return the first rows of *query*.

    Raises:
        ConfigError: it is no query, it does more than to read, it takes too long, or its answer
        is too long.
    """
    asked = json.dumps([str(path), query, limit, SECONDS]).encode()
    command = [sys.executable, "-P", "-m", __name__]
    child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
    try:
        talk = child.communicate(asked)
        answer, _ = await asyncio.wait_for(talk, SECONDS + _START_SECONDS)
    except TimeoutError:
        raise took_too_long() from None
    finally:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    if child.returncode:
        raise refused("it ended the process that ran it, perhaps by its need of memory")
    found = marshal.loads(answer)  # noqa: S302 - of our own process
    if isinstance(found, str):
        raise refused(found)
    if found is None:
        raise took_too_long()
    return Found(*found)


def main() -> None:
    """Answer the query on stdin: with columns and rows, or an error; None: it took too long."""
    path, query, limit, seconds = json.load(sys.stdin)
    with suppress(OSError, ValueError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    deadline, library = monotonic() + seconds, sqlite_library()
    address = f"{Path(path).absolute().as_uri()}?mode=ro"
    answer: object
    with closing(library.connect(address, uri=True, isolation_level=None)) as db:
        db.execute("PRAGMA query_only = ON")
        db.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
        db.set_authorizer(_judge)
        try:
            cursor = db.execute(query)
            rows = first_rows(cursor, limit)
            columns = tuple(each[0] for each in cursor.description or ())
            answer = (columns, rows) if columns else "it asks for nothing; ask one SELECT"
        except (library.Error, library.Warning) as error:
            answer = None if monotonic() > deadline else str(error)
        except MemoryError:
            answer = "it needs too much memory"
        except OverflowError as error:
            answer = str(error)
    sys.stdout.buffer.write(marshal.dumps(answer))


def _judge(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Return whether SQLite may do *action* in a query."""
    # FTS5 asks whether its tables have changed.
    own = action == sqlite3.SQLITE_PRAGMA and first == "data_version"
    called = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_OK if own or (action in _READS and not called) else sqlite3.SQLITE_DENY


if __name__ == "__main__":
    main()
