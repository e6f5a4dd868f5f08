"""A problem with a setting, in one line: the key, the reason, and the known keys.

A problem's text contains the value only if the value cannot be a secret.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from cueline.errors.suggestion import closest, known_instead
from cueline.events.sandbox import REFERENCE, VOLUME_NAME

NAME = r"^[a-zA-Z0-9_.-]{1,64}$"
URL = r"^https?://[^/@\s]+(/\S*)?$"
"""The pattern of an address without user and password, because the address is recorded."""
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
"""The pattern of the name of an environment variable; a secret seldom matches it."""

MEANINGS = {
    NAME: "a name: at most 64 letters, digits, dots, dashes and underscores",
    URL: "an address: like https://host/path, without a user or a password",
    VARIABLE: "the name of a variable: letters, digits and underscores",
    REFERENCE: "$ and the name of a variable, as $GITHUB_TOKEN",
    VOLUME_NAME: "the name of a volume: small letters, digits, - and _",
}


_SHORTEST_SECRET = 8
"""The length from which a text may be a secret in the wrong place (I11)."""
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_BOUNDS = {
    "greater_than": ("gt", "{said} is not more than {bound}"),
    "greater_than_equal": ("ge", "{said} is less than {bound}"),
    "less_than": ("lt", "{said} is not less than {bound}"),
    "less_than_equal": ("le", "{said} is more than {bound}"),
}
_KINDS = {
    "int": "whole number",
    "float": "number",
    "decimal": "number",
    "finite": "number to count with",
    "bool": "truth value; say true or false",
    "string": "text",
    "path": "path",
    "tuple": "list",
    "list": "list",
    "sequence": "list",
    "is_instance": "list",
    "dict": "table",
    "mapping": "table",
    "model": "table",
}
"""The name of the expected value, by the start of the error's type."""
_QUOTES = "; put quotes around it"
_PUT = {"text": _QUOTES, "path": _QUOTES, "list": "; put brackets around it"}
"""The advice for a value in a file whose form alone is wrong, by the expected value."""
TOO_DEEP = "it is nested too deep"
_WHOLE = {
    "missing": "it is missing",
    "string_too_short": "it is empty",
    "recursion_depth_exceeded": TOO_DEEP,
}


def error_text(problem: ErrorDetails) -> str:
    """Return the text about the fault of a value, with the expected value."""
    kind, said = problem["type"], value_text(problem["input"])
    context: Mapping[str, Any] = problem.get("ctx", {})
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return words.format(said=said, bound=_plain(context[name]))
    if kind == "literal_error":
        near = closest(str(problem["input"]), re.findall(r"'(.*?)'", context["expected"]))
        guess = f"; did you mean {near[0]!r}?" if near else ""
        return f"{said} is none of {context['expected']}{guess}"
    if kind == "time":
        return f"{said} is no time; {problem['msg']}"
    if kind == "string_pattern_mismatch":
        return f"{said} is not {MEANINGS[context['pattern']]}"
    return _WHOLE.get(kind) or _of_another_kind(problem, said)


def _of_another_kind(problem: ErrorDetails, said: str) -> str:
    kind = problem["type"]
    if kind == "invalid-json-value":
        return f"{said} is nothing that JSON can say{_QUOTES}"
    meant = next((_KINDS[each] for each in _KINDS if kind.startswith(each)), None)
    if meant is None:
        return problem["msg"].removeprefix("Value error, ")
    alike = isinstance(problem["input"], list | Mapping)
    return f"{said} is no {meant}{'' if alike else _PUT.get(meant, '')}"


def value_text(value: object) -> str:
    """Return *value* as a text for a message, which does not show a possible secret."""
    match value:
        case str():
            short = len(value) < _SHORTEST_SECRET
            return value if _NUMBER.fullmatch(value) else repr(value) if short else "this text"
        case int() | float() | Decimal():
            return _plain(value)
        case Mapping():
            return "a table"
        case list():
            return "a list"
        case date() | time():
            return "a date or time"
        case _:
            return "it"


def _plain(number: float | Decimal) -> str:
    """Return *number* as a person writes it: `true`, and `1` instead of `1.0`."""
    text = str(number).lower() if isinstance(number, bool) else str(number)
    return text.removesuffix(".0")


_UNKNOWN = "extra_forbidden"
_DEEPEST = 10
"""The most parts of a key that a message shows; no table of cueline is as deep."""
_IT_IS_UNKNOWN = "it is unknown"


class SettingProblem(NamedTuple):
    """One problem of a setting, and the setting's key."""

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
    """Return the problem of an unknown *key* of *shape*; *meant* is the suggested key."""
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
