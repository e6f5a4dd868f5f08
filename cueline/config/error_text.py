"""Texts for invalid values.

A text names the value if that can be no secret.
"""

import re
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any

from pydantic_core import ErrorDetails

from cueline.config.pattern import MEANINGS
from cueline.errors.suggestion import closest

_SHORTEST_SECRET = 8
"""A text of this length may be a key in the wrong place (I11)."""
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
"""What a value should be, by the start of the error's type."""
_QUOTES = "; put quotes around it"
_PUT = {"text": _QUOTES, "path": _QUOTES, "list": "; put brackets around it"}
"""How to write the value in a file, if only its form is wrong."""
TOO_DEEP = "it is nested too deep"
_WHOLE = {
    "missing": "it is missing",
    "string_too_short": "it is empty",
    "recursion_depth_exceeded": TOO_DEEP,
}


def error_text(problem: ErrorDetails) -> str:
    """Return what is wrong with a value, and what would be right."""
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
    """Return how a message names *value*: by itself if it can be no secret."""
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
    """Return a number as a person writes it."""
    text = str(number).lower() if isinstance(number, bool) else str(number)
    return text.removesuffix(".0")
