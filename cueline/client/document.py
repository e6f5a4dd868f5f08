"""The JSON form of results: names in snake_case, times in UTC, money as text."""

from typing import Any

import msgspec


def document(value: object) -> Any:
    """Return *value* in dicts, lists, strings, numbers and None.

    Times are ISO 8601 in UTC; decimals are strings, so that they stay exact; an error is its
    message.
    """
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: object) -> object:
    if isinstance(value, Exception):
        return str(value)
    if (dump := getattr(value, "model_dump", None)) is None:
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return dump(mode="json")
