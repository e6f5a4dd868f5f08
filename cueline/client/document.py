"""The JSON form of what this room returns: names in snake_case, times in UTC, money as text."""

from typing import Any

import msgspec
from pydantic import BaseModel


def document(value: object) -> Any:
    """Return *value* in dicts, lists, strings, numbers and None.

    Times are ISO 8601 in UTC, decimals are strings, so that they stay exact. An error is
    its message.
    """
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_plain))


def _plain(value: object) -> object:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case Exception():
            return str(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no form in JSON")
