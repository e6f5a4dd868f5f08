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

_FROZEN = ConfigDict(
    frozen=True,
    extra="forbid",
    ser_json_inf_nan="constants",  # otherwise NaN would be null, which may be a valid value
    defer_build=True,  # a command uses few of them
)


class Fact(BaseModel):
    """The base class of facts: frozen data about one thing that happened.

    `type` is a literal whose meaning never changes; `SCHEMA` is the version of the fields,
    raised together with an upcaster.
    """

    model_config = _FROZEN

    SCHEMA: ClassVar[int] = 1
    FACETS: ClassVar[tuple[str, ...]] = ()
    """The fields copied to the audit columns; never personal data."""

    type: str


class Part(BaseModel):
    """The base class of the parts of facts: frozen data within a fact."""

    model_config = _FROZEN


def shared_fields(given: object, kind: type[BaseModel]) -> dict[str, Any]:
    """Return the values of the fields that *given* and *kind* share, by field name."""
    names = kind.model_fields.keys() - {"type"}
    return {name: getattr(given, name) for name in names if hasattr(given, name)}


def text_of(value: JsonValue) -> str:
    """Return a text unchanged, and any other *value* as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def json_or_text(text: str) -> JsonValue:
    """Return the value of *text* as JSON; *text* itself if it is not valid JSON."""
    try:
        value: JsonValue = json.loads(text)
        return text if unsayable(value) else value
    except (ValueError, RecursionError):
        return text


def unsayable(value: JsonValue, at: str = "") -> str:
    """Return the first NaN or infinity in *value*, with its path; empty without such a number."""
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
"""The longest duration in seconds, so that no computed time exceeds the calendar."""
_LARGEST = 2**63 - 1
"""The largest integer that can be recorded exactly."""
_MOST_USD = Decimal(10**12)
"""The largest amount in US dollars; sums of smaller amounts are exact to the cent."""
_LEAST_USD = 1 / _MOST_USD


def _no_truth(value: object) -> object:
    """Return *value*; raise for a boolean, which pydantic would read as 1 or 0."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _recordable(value: int | None) -> int | None:
    """Return *value*; raise if the log cannot store the integer exactly."""
    if value is not None and value > _LARGEST:
        raise PydanticKnownError("less_than_equal", {"le": _LARGEST})
    return value


def _payable(value: Decimal | None, info: ValidationInfo) -> Decimal | None:
    """Return *value*; raise for an impossible amount, but not when a recorded fact is read."""
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
"""The validator of numbers that a person sets; it refuses `true` and `false`."""
TIME: Final = BeforeValidator(_in_seconds)
"""The validator of durations that a person sets; it accepts a unit, as `15m`."""
COUNTABLE: Final = Field(allow_inf_nan=False)
"""The constraint of numbers without infinity and NaN."""
LASTING: Final = Field(allow_inf_nan=False, le=LONGEST_SECONDS)
"""The constraint of durations that are added to a time.

Put it first in an annotation: a validator after `TIME` would also get None.
"""
LARGEST: Final = AfterValidator(_recordable)
"""The upper bound of integers, as a validator: pydantic applies only one of two `le` bounds."""
PAYABLE: Final = AfterValidator(_payable)
"""The validator of amounts in US dollars that are added, not only compared."""
Whole = Annotated[int, LARGEST, NUMBER]
Number = Annotated[float, COUNTABLE, NUMBER]
Time = Annotated[float, COUNTABLE, TIME]
Seconds = Annotated[float, LASTING, TIME]


def _sayable(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return *parameters*, which are sent as JSON; raise for NaN and infinity, which JSON lacks."""
    if found := unsayable(parameters):
        raise ValueError(f"nan and inf are nothing that JSON can say: {found}")
    return parameters


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_sayable)]
"""Parameters passed to a provider unchanged."""
