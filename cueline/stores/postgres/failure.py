"""Translates PostgreSQL's errors into cueline's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from cueline.errors import LogLostError, LogUnavailableError, StoreError
from cueline.stores.postgres.place import Place

OTHER_LOG: Final = "CL001"
DAMAGED_TIME: Final = "CL002"
_GONE = {
    "3F000": "its schema was removed",
    "42P01": "a table was removed",
    "42883": "a function was removed",
    OTHER_LOG: "it was replaced by another log",
}
# By SQLSTATE, or the class that it begins with.
_REASONS = {
    "25006": "the server only reads now; name the primary",
    "42501": "this role may not; `cueline log migrate --writer ROLE` grants it",
    "55P03": "other writers keep it locked; ask again",
    "57014": "the server took too long; ask again",
    "53100": "the server's disk is full; make room, then ask again",
    "53300": "the server has too many connections; raise max_connections, or close some",
    "58": "the server's disk failed; mend it, then ask again",
    "XX": "the database is damaged; restore it from a backup",
}
_PASSING = ("25006", "40", "53", "55P03", "57", "58")
"""They are of the server, not of a statement."""


_OF_LOG = {*_GONE, DAMAGED_TIME, "42501"}


def state_of(error: Exception) -> str:
    """Return the SQLSTATE of *error*; empty without one."""
    return getattr(error, "sqlstate", None) or ""


def is_locked(error: Exception) -> bool:
    """Whether others held the log's lock for too long."""
    return state_of(error) == "55P03"


def is_of_server(error: Exception) -> bool:
    """Whether the server or the log is at fault, not a statement's values."""
    if not isinstance(error, psycopg.Error):
        return False
    state = state_of(error)
    return not state or state in _OF_LOG or state.startswith(_PASSING)


@contextmanager
def translating(place: Place) -> Iterator[None]:
    """Raise cueline's error for one of PostgreSQL in the block."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, place) from error


def translated(error: Exception, place: Place) -> StoreError:
    """Return cueline's error for PostgreSQL's *error*."""
    state = state_of(error)
    if state in _GONE:
        return LogLostError(place.name, _GONE[state])
    return LogUnavailableError(place.name, _reason(error, state))


def _reason(error: Exception, state: str) -> str:
    reason = _REASONS.get(state) or _REASONS.get(state[:2])
    if reason is not None:
        return reason
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return said or (str(error).strip().splitlines() or ["the connection failed"])[0]
