"""What cueline uses of Python's `sqlite3`, on apsw, in which the files can be ours.

Only for a process of its own: two copies of SQLite must not open the same file in one process.
"""

import sys
from contextlib import suppress
from types import ModuleType

import apsw

sqlite_version = apsw.sqlite_lib_version()
sqlite_version_info = tuple(map(int, sqlite_version.split(".")))
vfs = ""
"""The name of the file system of connections that are opened from now on; empty: SQLite's own."""


class Error(Exception):
    """An error with SQLite's result code."""


class DatabaseError(Error):
    """See `sqlite3`."""


class OperationalError(DatabaseError):
    """See `sqlite3`."""


class IntegrityError(DatabaseError):
    """See `sqlite3`."""


_KINDS = {apsw.ConstraintError: IntegrityError, apsw.CorruptError: DatabaseError}
_KINDS |= {apsw.NotADBError: DatabaseError}


_CODES = {apsw.FullError: 13, apsw.IOError: 10, apsw.ReadOnlyError: 8, apsw.BusyError: 5}
"""Of what a file system of ours raises, which has no code."""


def translated(error):
    """Return apsw's error as `sqlite3` would raise it."""
    found = _KINDS.get(type(error), OperationalError)(str(error))
    code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
    found.sqlite_errorcode = code or _CODES.get(type(error), 1)
    return found


class Cursor:
    """A cursor that has read all rows of its statement."""

    def __init__(self, db):
        self._db = db
        self._rows = iter(())
        self.lastrowid, self.rowcount = None, -1

    def execute(self, sql, values=()):
        try:
            self._rows = iter(self._db.execute(sql, values).fetchall())
        except apsw.Error as error:
            raise translated(error) from error
        self.lastrowid, self.rowcount = self._db.last_insert_rowid(), self._db.changes()
        return self

    def executemany(self, sql, rows):
        try:
            self._db.executemany(sql, rows)
        except apsw.Error as error:
            raise translated(error) from error
        return self

    def __iter__(self):
        return self._rows

    def fetchone(self):
        return next(self._rows, None)

    def fetchall(self):
        return list(self._rows)

    def close(self):
        self._rows = iter(())


class Connection:
    """A connection that starts transactions only by statement."""

    def __init__(self, name, timeout):
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
        try:
            self._db = apsw.Connection(name, flags=flags, vfs=vfs or None)
        except apsw.Error as error:
            raise translated(error) from error
        self._db.set_busy_timeout(int(timeout * 1000))

    @property
    def in_transaction(self):
        return self._db.in_transaction

    def cursor(self):
        return Cursor(self._db)

    def execute(self, sql, values=()):
        return self.cursor().execute(sql, values)

    def executemany(self, sql, rows):
        return self.cursor().executemany(sql, rows)

    def close(self):
        with suppress(apsw.Error):  # of the last checkpoint, which SQLite keeps to itself
            self._db.close()


def connect(name, *, timeout, uri, isolation_level, check_same_thread):
    """See `sqlite3.connect`, as cueline calls it."""
    assert uri
    assert isolation_level is None
    assert not check_same_thread
    return Connection(name, timeout)


def install():
    """Have cueline use this module, in a process that has not chosen its SQLite yet."""
    package = ModuleType("pysqlite3")
    package.dbapi2 = sys.modules[__name__]
    sys.modules |= {"pysqlite3": package, "pysqlite3.dbapi2": package.dbapi2}
