"""Values of a caller, checked: a mistake is one of our errors, and names the value and the fix."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from cueline.config.problem import problems_of
from cueline.errors import ConfigError
from cueline.events.stream import session_stream

M = TypeVar("M", bound=BaseModel)


def made(kind: type[M], **values: object) -> M:
    """Return a *kind* of *values*.

    Raises:
        ConfigError: it cannot have one of them.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = problems_of(error, kind)[0]
        raise ConfigError(problem.key, problem.reason) from error


def stream_of(session: object) -> str:
    """Return the stream of a session, by its id or stream.

    Raises:
        InvalidNameError: no id has this form.
        ConfigError: it is no text.
    """
    if not isinstance(session, str):
        raise ConfigError("session", f"{session!r} is no id; an id is text, such as '7f3a'")
    return session_stream(session)
