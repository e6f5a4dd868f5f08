"""Checks values of callers: an error names the value and the fix."""

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from cueline.errors import ConfigError
from cueline.events.store import to_us
from cueline.events.stream import session_stream

if TYPE_CHECKING:
    from cueline.projections.session import RunRow, SessionRow

M = TypeVar("M", bound=BaseModel)


def make_value(kind: type[M], **values: object) -> M:
    """Return an instance of *kind* with the fields *values*.

    Raises:
        ConfigError: a value is invalid.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        from cueline.config.problem import problems_of

        problem = problems_of(error, kind)[0]
        raise ConfigError(problem.key, problem.reason) from error


def cursor_of(row: "SessionRow | RunRow") -> str:
    """Return the cursor after *row* in a list by the time of change."""
    return f"{to_us(row.updated_at)}.{session_stream(row.id)}"


def read_cursor(cursor: str | None) -> tuple[int, str] | None:
    """Return the place of a cursor of `cursor_of`.

    Raises:
        ConfigError: it is no cursor.
    """
    if cursor is None:
        return None
    moment, _, stream = cursor.partition(".")
    if not moment.isdecimal() or not stream:
        raise ConfigError("cursor", f"{cursor!r} is none: give the `next` of a page")
    return int(moment), stream


def read_position(cursor: str | None) -> int | None:
    """Return the position of the log that is a cursor.

    Raises:
        ConfigError: it is no cursor.
    """
    if cursor is not None and not cursor.isdecimal():
        raise ConfigError("cursor", f"{cursor!r} is none: give the `next` of a page")
    return None if cursor is None else int(cursor)


def check_limit(limit: int) -> None:
    """Refuse a limit below 1.

    Raises:
        ConfigError: give a number of 1 or more.
    """
    if not isinstance(limit, int) or limit < 1:
        raise ConfigError("limit", f"{limit!r} is no number of rows from 1 on")
