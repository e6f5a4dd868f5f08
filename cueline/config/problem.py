"""A problem with a setting, in one line: the key, the reason, and the known keys."""

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cueline.config.error_text import error_text
from cueline.errors.suggestion import known_instead

_UNKNOWN = "extra_forbidden"
_DEEPEST = 10
"""The most names in a key in a message; no table of cueline is as deep."""
_IT_IS_UNKNOWN = "it is unknown"


class SettingProblem(NamedTuple):
    """One problem and its place."""

    key: str
    reason: str

    def __str__(self) -> str:
        return f"key {self.key!r}: {self.reason}" if self.key else self.reason


def problems_of(error: ValueError, kind: Any, key: str = "") -> list[SettingProblem]:
    """Return all problems of a value of *kind* at *key*, the first to correct first."""
    if not isinstance(error, ValidationError):
        return [SettingProblem(key, str(error))]
    # A typo in a required key is two problems; the typo is the one to correct.
    found = sorted(error.errors(include_url=False), key=lambda each: each["type"] != _UNKNOWN)
    return [_problem(each, kind, key) for each in found]


def _problem(problem: ErrorDetails, kind: Any, key: str) -> SettingProblem:
    path = [str(part) for part in problem["loc"][:_DEEPEST]]
    where = ".".join(filter(None, [key, *path]))
    if problem["type"] == _UNKNOWN:
        shape = _shape_at(kind, path[:-1])
        return unknown(where, shape) if shape else SettingProblem(where, _IT_IS_UNKNOWN)
    return SettingProblem(where, error_text(problem))


def unknown(key: str, shape: type[BaseModel], meant: str | None = None) -> SettingProblem:
    """Return the problem of an unknown key of *shape*, with the meant one, if known."""
    above, _, name = key.rpartition(".")
    where = f"in [{above}]" if above else "at the top level"
    known = known_instead(name, sorted(shape.model_fields), f"known {where} are", meant=meant)
    return SettingProblem(key, f"{_IT_IS_UNKNOWN}{known}")


def _shape_at(kind: Any, path: Sequence[str]) -> type[BaseModel] | None:
    """Return the shape of the table at *path* in a value of *kind*."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not path:
            return kind
        field = kind.model_fields.get(path[0])
        return _shape_at(field.annotation, path[1:]) if field else None
    inner = [each for each in get_args(kind) if each not in (type(None), Ellipsis)]
    # The name or number of an entry is a part of the path, a choice between kinds is not.
    entry = get_origin(kind) in (dict, tuple, list)
    return _shape_at(inner[-1], path[1:] if entry else path) if inner else None
