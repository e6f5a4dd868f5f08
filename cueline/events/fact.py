"""The base of all facts, and the types of their values."""

import json
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
)
from pydantic_core import PydanticCustomError, PydanticKnownError


class Fact(BaseModel):
    """The base class of facts: frozen data about one thing that happened.

    `type` is a literal whose meaning never changes; `SCHEMA` is the version of the fields,
    raised together with an upcaster.
    """

    # Otherwise NaN would be written as null, which may be a valid value.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    SCHEMA: ClassVar[int] = 1
    FACETS: ClassVar[tuple[str, ...]] = ()
    """The fields copied to the audit columns; never personal data."""

    type: str


class Part(BaseModel):
    """A part of a fact."""

    # Otherwise NaN would be written as null, which may be a valid value.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def shared_fields(given: object, kind: type[BaseModel]) -> dict[str, Any]:
    """Return, by name, the values in *given* of the fields that *kind* has, too."""
    names = kind.model_fields.keys() - {"type"}
    return {name: getattr(given, name) for name in names if hasattr(given, name)}


def text_of(value: JsonValue) -> str:
    """Return a text unchanged, and any other *value* as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_or_text(text: str) -> JsonValue:
    """Return *text* read as JSON; a text that is no JSON unchanged."""
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


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""The longest duration: no computed time is beyond the calendar."""
_LARGEST = 2**63 - 1
"""The largest integer that can be recorded exactly."""
_MOST_USD = Decimal(10**12)
"""The largest amount: sums are exact to the cent, and an amount stays readable."""
_LEAST_USD = 1 / _MOST_USD


def _no_truth(value: object) -> object:
    """Refuse a boolean, which would be read as 1 or 0."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _recordable(value: int | None) -> int | None:
    """Refuse an integer that the log cannot hold."""
    if value is not None and value > _LARGEST:
        raise PydanticKnownError("less_than_equal", {"le": _LARGEST})
    return value


def _payable(value: Decimal | None, info: ValidationInfo) -> Decimal | None:
    """Refuse an impossible amount; a recorded one is read unchanged."""
    if value is not None and info.mode != "json":
        if value > _MOST_USD:
            raise PydanticKnownError("less_than_equal", {"le": _MOST_USD})
        if 0 < value < _LEAST_USD:
            raise PydanticKnownError("greater_than_equal", {"ge": _LEAST_USD})
    return value


def _in_seconds(value: object) -> object:
    """Return the seconds of `300`, `90s`, `15m`, `4h` or `7d`."""
    if not isinstance(value, str):
        return _no_truth(value)
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([smhd])?", value.strip())
    if found is None:
        means = "a time is a number of seconds, or like 90s, 15m, 4h or 7d"
        raise PydanticCustomError("time", means)
    return float(found[1]) * _UNITS[found[2] or "s"]


NUMBER: Final = BeforeValidator(_no_truth)
"""For numbers that a person sets: `true` is not accepted."""
TIME: Final = BeforeValidator(_in_seconds)
"""For durations that a person sets: a unit is accepted."""
COUNTABLE: Final = Field(allow_inf_nan=False)
"""Also without infinity and NaN."""
LASTING: Final = Field(allow_inf_nan=False, le=LONGEST_SECONDS)
"""For durations added to a time.

Put it first in an annotation: a validator after `TIME` would also get None.
"""
LARGEST: Final = AfterValidator(_recordable)
"""A number without a bound of its own, because pydantic would apply only one of two."""
PAYABLE: Final = AfterValidator(_payable)
"""For US dollars that are added, not only compared."""
Whole = Annotated[int, LARGEST, NUMBER]
Number = Annotated[float, COUNTABLE, NUMBER]
Time = Annotated[float, COUNTABLE, TIME]
Seconds = Annotated[float, LASTING, TIME]


def _sayable(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return *parameters*, which are sent as JSON; refuse the TOML numbers that JSON lacks."""
    if found := unsayable(parameters):
        raise ValueError(f"nan and inf are nothing that JSON can say: {found}")
    return parameters


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_sayable)]
"""Parameters passed to a provider unchanged."""
