"""Converts statements, texts, times and errors for PostgreSQL."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from cueline.clock import Clock, SystemClock
from cueline.errors import LogLostError, LogUnavailableError, StoreError
from cueline.events.store import to_us
from cueline.stores.postgres.address import Address

_MARK = "\x01"
MATCH = "words MATCH ?"
"""The condition of the full-text index in SQLite."""
# The index is asked first and once: a planner that takes a rare word for a common one would look
# at the text of each event, which takes half a minute for a million.
FOUND = """words.rowid = ANY (ARRAY(
    SELECT found.rowid FROM words AS found WHERE lexemes_of(found.text) @@ query_of(?)))"""
"""The same condition here."""


def marked(statement: str) -> bytes:
    """Return *statement*, which has question marks for values, with psycopg's marks."""
    return statement.replace(MATCH, FOUND).replace("?", "%s").encode()


def escaped(text: str) -> str:
    """Return *text* with NUL escaped; `unescaped` restores it."""
    if "\0" not in text and _MARK not in text:
        return text
    return text.replace(_MARK, "\x01a").replace("\0", "\x01b")


def unescaped(text: str) -> str:
    """Return the original of *text*, a result of `escaped`."""
    if _MARK not in text:
        return text
    return text.replace("\x01b", "\0").replace("\x01a", _MARK)


def escaped_values(values: Iterable[object]) -> list[object]:
    """Return *values* with their texts escaped."""
    return [escaped(value) if isinstance(value, str) else value for value in values]


def unescaped_row(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row with its texts restored."""
    return tuple(unescaped(value) if isinstance(value, str) else value for value in row)


def clock_us(clock: Clock) -> int | None:
    """Return the time to record; None for the time of the server, which all machines share."""
    return None if isinstance(clock, SystemClock) else to_us(clock.now())


OTHER_LOG: Final = "CL001"
DAMAGED_TIME: Final = "CL002"
_GONE = {
    "3F000": "its schema was removed",
    "42P01": "a table was removed",
    "42883": "a function was removed",
    OTHER_LOG: "it was replaced by another log",
}
# By SQLSTATE, or by its class, which is the beginning of the SQLSTATE.
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
"""The classes of errors of the server, not of a statement."""


_OF_LOG = {*_GONE, DAMAGED_TIME, "42501"}


def state_of(error: Exception) -> str:
    """Return the SQLSTATE of *error*; empty without one."""
    return getattr(error, "sqlstate", None) or ""


def is_locked(error: Exception) -> bool:
    """Whether other processes held the log's lock for too long."""
    return state_of(error) == "55P03"


def is_of_server(error: Exception) -> bool:
    """Whether the server or the log is the cause, not the values of a statement."""
    if not isinstance(error, psycopg.Error):
        return False
    state = state_of(error)
    return not state or state in _OF_LOG or state.startswith(_PASSING)


@contextmanager
def translating(address: Address) -> Iterator[None]:
    """Translate errors of PostgreSQL in the block into errors of cueline."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error, address) from error


def translated(error: Exception, address: Address) -> StoreError:
    """Return cueline's error for PostgreSQL's *error*."""
    state = state_of(error)
    if state in _GONE:
        return LogLostError(address.name, _GONE[state])
    return LogUnavailableError(address.name, _reason(error, state))


def _reason(error: Exception, state: str) -> str:
    reason = _REASONS.get(state) or _REASONS.get(state[:2])
    if reason is not None:
        return reason
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return said or (str(error).strip().splitlines() or ["the connection failed"])[0]
