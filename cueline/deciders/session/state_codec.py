"""Encodes a session's state, and the prompt without messages, as bytes.

Structs and facts are written with their field names. Bytes with other fields cannot
be decoded, so a new or renamed field needs no new `STATE_FOLD`. A new meaning of a
field needs one.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Any, Final

from msgspec import Struct, msgpack

from cueline.deciders.prompt import PROMPT_FOLD, Prompt
from cueline.deciders.session.state import STATE_FOLD, SessionState
from cueline.events.fact import Fact, Part

FOLDS: Final = (STATE_FOLD, PROMPT_FOLD)
_BITS: Final = 63
"""The number of bits of an integer that msgpack can encode."""
_PLAIN = (bool, int, float, str, bytes, datetime, type(None))


def packed(state: SessionState, prompt: Prompt) -> bytes:
    """Return *state*, and *prompt* without its messages, as bytes.

    Raises:
        TypeError: a value has a type that cannot be encoded.
        ValueError: a text is not valid Unicode.
        OverflowError: a number is too large.
    """
    return msgpack.encode(_lowered([state, list(prompt.rest)]))


def unpacked(content: bytes) -> tuple[SessionState, Prompt]:
    """Return the packed state and prompt; the prompt has no messages.

    Raises:
        TypeError: another version of the rules wrote the bytes.
        ValueError, KeyError: as for `TypeError`.
    """
    state, rest = _raised(msgpack.decode(content), _classes())
    if not isinstance(state, SessionState):
        raise TypeError("a state was expected")
    prompt = Prompt()
    prompt.rest = tuple(rest)
    return state, prompt


def _lowered(value: Any) -> Any:
    """Return *value* as msgpack types; other types become a list with a tag."""
    if isinstance(value, Enum):
        return ["enum", _name(type(value)), value.value]
    if isinstance(value, int) and value.bit_length() > _BITS:
        return ["int", str(value)]
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Struct):
        fields = {name: _lowered(getattr(value, name)) for name in value.__struct_fields__}
        return ["struct", _name(type(value)), fields]
    if isinstance(value, Part | Fact):
        return ["part", _name(type(value)), value.__pydantic_serializer__.to_json(value)]
    if isinstance(value, dict):
        return ["dict", [[_lowered(key), _lowered(each)] for key, each in value.items()]]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if type(value) in (tuple, list):
        return [type(value).__name__, [_lowered(each) for each in value]]
    raise TypeError(f"a state cannot hold a {type(value).__name__}")


def _raised(value: Any, classes: dict[str, Any]) -> Any:
    match value:
        case ["enum", name, inner]:
            return classes[name](inner)
        case ["struct", name, dict() as fields]:
            made = classes[name]
            if set(fields) != set(made.__struct_fields__):
                raise ValueError(f"{name} has other fields by now")
            return made(**{name: _raised(each, classes) for name, each in fields.items()})
        case ["part", name, bytes() as content]:
            return classes[name].__pydantic_validator__.validate_json(content)
        case ["dict", pairs]:
            return {_raised(key, classes): _raised(each, classes) for key, each in pairs}
        case ["decimal", text]:
            return Decimal(text)
        case ["int", text]:
            return int(text)
        case ["tuple", values]:
            return tuple([_raised(each, classes) for each in values])
        case ["list", values]:
            return [_raised(each, classes) for each in values]
        case list() | dict():
            raise ValueError("it is of another form")
        case _:
            return value


def _name(of: type) -> str:
    return f"{of.__module__}.{of.__qualname__}"


@cache
def _classes() -> dict[str, Any]:
    """Return the classes that may be decoded, by name: only data of rules and facts."""
    return {_name(each): each for base in (Struct, Part, Fact, Enum) for each in _below(base)}


def _below(base: type) -> Iterator[type]:
    below: list[type] = type.__subclasses__(base)
    for each in below:
        if each.__module__.startswith(("cueline.deciders.", "cueline.events.")):
            yield each
        yield from _below(each)
