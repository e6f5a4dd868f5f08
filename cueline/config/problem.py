"""What is wrong with a value, in a line: the key, the reason, and what is known instead."""

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError


def problem_of(error: ValidationError, kind: Any, key: str = "") -> str:
    """Say what is wrong with a value of *kind* at *key*. It is not quoted: it may be secret."""
    problems = error.errors(include_url=False, include_input=False)
    # A typo in a key that is needed is two problems; the typo is the one to mend.
    problem = min(problems, key=lambda each: each["type"] != "extra_forbidden")
    path = [str(part) for part in problem["loc"]]
    where = ".".join(filter(None, [key, *path]))
    if problem["type"] == "extra_forbidden":
        shape = _shape_at(kind, path[:-1])
        return unknown(where, shape) if shape else f"unknown key {where!r}"
    if problem["type"] == "missing":
        return f"key {where!r} is missing"
    reason = problem["msg"].removeprefix("Value error, ")
    return f"key {where!r}: {reason}" if where else reason


def unknown(key: str, shape: type[BaseModel], meant: str | None = None) -> str:
    """Say that *shape* has no such key, and which was meant, if that is known."""
    above, _, _ = key.rpartition(".")
    where = f"in [{above}]" if above else "at the top level"
    guess = f"; did you mean {meant!r}?" if meant else ""
    return f"unknown key {key!r}{guess}; known {where} are {', '.join(sorted(shape.model_fields))}"


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
