"""Checks values of callers: an error names the value and the fix."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cueline.config.problem import problems_of
from cueline.errors import ConfigError

M = TypeVar("M", bound=BaseModel)


def make_value(kind: type[M], **values: object) -> M:
    """Return an instance of *kind* with the fields *values*.

    Raises:
        ConfigError: a value is invalid.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = problems_of(error, kind)[0]
        raise ConfigError(problem.key, problem.reason) from error


def check_limit(limit: int) -> None:
    """Refuse a limit below 1.

    Raises:
        ConfigError: give a number of 1 or more.
    """
    if not isinstance(limit, int) or limit < 1:
        raise ConfigError("limit", f"{limit!r} is no number of rows from 1 on")
