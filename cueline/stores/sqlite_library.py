"""Chooses the SQLite library of this process.

Versions before 3.51.3 (except 3.50.7, 3.44.6 and later ones of these lines) can lose
committed transactions if two connections write and checkpoint at the same instant.
cueline refuses them.
"""

import importlib
import sqlite3
from functools import cache
from types import ModuleType

from cueline.errors import ConfigError

_MENDED_LINES = ((3, 44, 6), (3, 50, 7))
_MENDED = (3, 51, 3)
_INSTALL = (
    "install pysqlite3>=0.6.1 (not pysqlite3-binary) where it has a wheel, "
    "or a Python built with SQLite 3.51.3 or newer"
)


def is_sound(version: tuple[int, ...]) -> bool:
    """Whether a SQLite of *version* keeps what it committed."""
    return version >= _MENDED or any(
        version[:2] == mended[:2] and version >= mended for mended in _MENDED_LINES
    )


def choose(pysqlite3: ModuleType | None, standard: ModuleType) -> ModuleType:
    """Return the module to use: *pysqlite3* if it is installed, else the *standard* one.

    An old pysqlite3 is an error: sqlite-utils would use it, and two copies of SQLite in
    one process drop each other's file locks.

    Raises:
        ConfigError: the module is too old; the message says what to install.
    """
    chosen = standard if pysqlite3 is None else pysqlite3
    if not is_sound(chosen.sqlite_version_info):
        raise ConfigError(
            f"SQLite {chosen.sqlite_version} ({chosen.__name__})",
            f"can lose committed transactions; {_INSTALL}",
        )
    return chosen


@cache
def sqlite_library() -> ModuleType:
    """Return the `sqlite3` module of this process.

    Raises:
        ConfigError: none is new enough; the message says what to install.
    """
    try:
        pysqlite3 = importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        pysqlite3 = None
    return choose(pysqlite3, sqlite3)
