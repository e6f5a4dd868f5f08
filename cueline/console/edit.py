"""Applies a person's changes to the arguments of a call."""

import json
from collections.abc import Mapping, Sequence
from typing import NoReturn

from cueline.errors import ConfigError
from cueline.events.message import Arguments


def edit_arguments(arguments: Mapping[str, object], changes: Sequence[str]) -> Arguments:
    """Return *arguments* with *changes*: `name=value`, or a JSON object that replaces all.

    A value is JSON where it reads like that, else text.

    Raises:
        ConfigError: a change has neither form.
    """
    result = dict(arguments)
    for change in changes:
        if change.lstrip().startswith("{"):
            result = _object(change)
            continue
        name, equals, value = change.partition("=")
        if not (equals and name.strip()):
            raise ConfigError("the edit", f"{change!r} is neither NAME=VALUE nor a JSON object")
        result[name.strip()] = _value(value)
    return result  # type: ignore[return-value]  # arguments are JSON, and so is what was read


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text, parse_constant=_no_json)
    except ValueError as error:
        raise ConfigError("the edit", f"it is not JSON: {error}") from error
    assert isinstance(found, dict), "what begins with a brace is an object"
    return found


def _value(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_json)
    except ValueError:
        return text


def _no_json(name: str) -> NoReturn:
    """Refuse NaN and infinity, which JSON cannot record."""
    raise ValueError(f"{name} is no value in it")
