"""JSON values: read from a text, written as one, and the numbers that JSON lacks."""

import json
import math
from collections.abc import Iterable

from pydantic import JsonValue


def text_of(value: JsonValue) -> str:
    """Return a text as it is, and any other *value* as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_or_text(text: str) -> JsonValue:
    """Return *text* read as JSON, or as it is."""
    try:
        value: JsonValue = json.loads(text)
        return text if unsayable(value) else value
    except (ValueError, RecursionError):
        return text


def unsayable(value: JsonValue, at: str = "") -> str:
    """Return the first number in *value* that JSON lacks, and its path; empty if there is none."""
    inside: Iterable[tuple[str, JsonValue]] = ()
    match value:
        case float() if not math.isfinite(value):
            return f"{value} at {at or 'the top'}"
        case dict():
            inside = ((f"{at}.{key}".lstrip("."), each) for key, each in value.items())
        case list():
            inside = ((f"{at}[{index}]", each) for index, each in enumerate(value))
    return next(filter(None, (unsayable(each, where) for where, each in inside)), "")
