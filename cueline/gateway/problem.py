"""Errors as responses: RFC 9457 problems with the codes and values of cueline's errors."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.responses import JSONResponse

from cueline.errors import (
    BlueprintConflictError,
    ConfigError,
    CuelineError,
    ForbiddenError,
    InvalidNameError,
    KeyReusedError,
    MissingBlobError,
    RejectedError,
    RunnerGoneError,
    UnknownSessionError,
)

STATUSES: Final[Mapping[type[CuelineError], int]] = {
    UnknownSessionError: 404,
    ForbiddenError: 403,
    MissingBlobError: 404,
    RunnerGoneError: 410,
    ConfigError: 422,
    InvalidNameError: 422,
    RejectedError: 409,
    KeyReusedError: 409,
}
"""The status of each error: the first class that the error is an instance of; else 503 if the
same request can succeed later, and 500 if not."""
MEDIA_TYPE: Final = "application/problem+json"
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "A problem by RFC 9457, with the values of the error.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "`about:blank`, or the name of the error."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "retryable": {"type": "boolean", "description": "Whether the same request can succeed."},
        "field": {"type": "string", "description": "The wrong field, if it is one field."},
    },
}


def problem(
    status: int, title: str, detail: str, *, kind: str = "about:blank", **more: object
) -> JSONResponse:
    """Return the response for a problem."""
    told = {"type": kind, "title": title, "status": status, "detail": detail, **more}
    return JSONResponse(told, status, media_type=MEDIA_TYPE)


def status_of(error: CuelineError) -> int:
    """Return the HTTP status of an error."""
    otherwise = 503 if error.retryable else 500
    return next((each for kind, each in STATUSES.items() if isinstance(error, kind)), otherwise)


def problem_of(error: CuelineError) -> JSONResponse:
    """Return the response for an error of cueline; that for a runner has a form of its own."""
    status = status_of(error)
    if isinstance(error, BlueprintConflictError):
        return JSONResponse(error.as_dict(), status)
    told = error.to_json()
    name, detail = str(told.pop("error")), str(told.pop("message"))
    if isinstance(error, ConfigError):
        told["field"] = error.subject
    more = {key: value for key, value in told.items() if key not in {"status", "title", "kind"}}
    return problem(status, name, detail, kind=name, **more)


def first_fault(error: RequestValidationError | ValidationError) -> tuple[str, str]:
    """Return the field of the first wrong value, and what is wrong with it."""
    first = error.errors()[0]
    where = [str(each) for each in first["loc"] if each not in ("body", "query", "path")]
    field = ".".join(where or map(str, first["loc"])) or "arguments"
    return field, f"{field}: {first['msg']}"


def problem_of_input(error: RequestValidationError) -> JSONResponse:
    """Return the response for the first wrong value of a request."""
    field, detail = first_fault(error)
    return problem(422, "InvalidInput", detail, kind="InvalidInput", field=field, retryable=False)
