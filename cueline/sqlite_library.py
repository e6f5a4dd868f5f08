"""The SQLite library of this process, and its errors as messages for the operator.

Versions before 3.51.3 (except 3.50.7, 3.44.6 and later ones of these lines) can lose
committed transactions if two connections write and checkpoint at the same instant.
cueline refuses them.
"""

import errno
import importlib
import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import Final

from cueline import files
from cueline.errors import ConfigError

_MENDED_LINES = ((3, 44, 6), (3, 50, 7))
_MENDED = (3, 51, 3)
_INSTALL = (
    "install pysqlite3>=0.6.1 (not pysqlite3-binary) where it has a wheel, "
    "or a Python built with SQLite 3.51.3 or newer"
)


def is_sound(version: tuple[int, ...]) -> bool:
    """Whether a SQLite of *version* never loses committed transactions."""
    return version >= _MENDED or any(
        version[:2] == mended[:2] and version >= mended for mended in _MENDED_LINES
    )


def choose(pysqlite3: ModuleType | None, standard: ModuleType) -> ModuleType:
    """Return the module to use: *pysqlite3* if it is installed, else the *standard* one.

    An old pysqlite3 is an error: programs could use both, and two copies of SQLite in
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


NOT_OURS: Final = "it is not a log of cueline; name another file"

# By SQLite's primary result code; the codes never change.
_REASONS = {
    8: "it can only be read; mend its permissions",
    10: "the disk failed; mend it, then ask again",
    11: "the file is damaged; restore it from a backup",
    13: "the disk is full; make room, then ask again",
    14: "it cannot be opened; see that its folder is there and may be written",
    26: NOT_OURS,
}
_CANNOT_OPEN = 14
_BUSY = frozenset({5, 6})
_FULL = 13
_FAILED = 10
_SHARED = 64 * 1024
"""More bytes than SQLite needs at a time for its shared memory."""
_BROKEN = frozenset({11, 26})
_OPERATION = frozenset({8, 10, 13, 14})


def code_of(error: Exception) -> int:
    """Return SQLite's primary result code of *error*; 0 without one."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def is_busy(error: Exception) -> bool:
    """Whether another process holds the lock."""
    return code_of(error) in _BUSY


def is_damage(error: Exception) -> bool:
    """Whether the read data differs from the written data."""
    return not is_busy(error) and code_of(error) not in _OPERATION


def is_broken(error: Exception) -> bool:
    """Whether the file is damaged, or is no database."""
    return code_of(error) in _BROKEN


def is_full(error: Exception) -> bool:
    """Whether the disk is full."""
    return code_of(error) == _FULL


def is_unusable(error: Exception) -> bool:
    """Whether the file is at fault, not the statement."""
    return is_busy(error) or code_of(error) in _REASONS


def reason_of(error: Exception, path: Path) -> str:
    """Return the operator's message for SQLite's *error* on the file *path*."""
    if code_of(error) == _FAILED and _has_no_room(path.parent):
        return _REASONS[_FULL]
    if code_of(error) == _CANNOT_OPEN and (said := files.shortage()) is not None:
        return said
    return _REASONS.get(code_of(error), str(error))


def _has_no_room(folder: Path) -> bool:
    """Whether a file in *folder* cannot grow; SQLite calls that an I/O error for shared memory."""
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_SHARED))
    except OSError as error:
        return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return False
