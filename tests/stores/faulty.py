"""A connection that fails when it is told to."""

import threading

from cueline.sqlite_library import sqlite_library
from cueline.stores.sqlite import SqliteStore
from cueline.stores.sqlite_file import LogFile
from cueline.stores.sqlite_writer import SqliteWriter
from cueline.stores.waiting import Notifier

IO_ERROR, FULL = 10, 13


def failure(code):
    error = sqlite_library().OperationalError(f"failed with {code}")
    error.sqlite_errorcode = code
    return error


class FaultyConnections:
    """Connects as the log's file does; counts the commits, and fails by order."""

    def __init__(self, path):
        self.file = LogFile(path)
        self.commit_threads = []
        self.opened = 0
        self.last = None
        self.before, self.after = {}, {}
        """Of a statement: how it fails instead of, or after, taking place."""

    def __call__(self):
        self.opened += 1
        self.last = FaultyConnection(self, self.file.writer())
        return self.last


class FaultyConnection:
    def __init__(self, faults, db):
        self._faults = faults
        self.db = db

    def __getattr__(self, name):
        return getattr(self.db, name)

    def execute(self, statement, *values):
        if statement == "COMMIT":
            self._faults.commit_threads.append(threading.get_ident())
        if statement in self._faults.before:
            raise self._faults.before.pop(statement)
        result = self.db.execute(statement, *values)
        if statement in self._faults.after:
            raise self._faults.after.pop(statement)
        return result


def open_faulty(path, clock, **writer):
    """Open a store whose writer's connections fail by order."""
    connections = FaultyConnections(path)
    log_id = connections.file.open(must_exist=False, read_only=False, now_us=0)
    bell = Notifier()
    writes = SqliteWriter(connections.file, clock, bell.ring, connect=connections, **writer)
    return SqliteStore(connections.file, log_id, clock, writes, bell), connections
