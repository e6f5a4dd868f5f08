"""Types of the numbers that a person sets."""

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationInfo
from pydantic_core import PydanticCustomError, PydanticKnownError

from cueline.events.json_value import unsayable

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""So that no computed time is beyond the calendar."""
_LARGEST = 2**63 - 1
"""Larger amounts could not be recorded exactly."""
_MOST_USD = Decimal(10**12)
"""So that sums are exact to the cent, and an amount stays readable."""
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
"""It has no bound of its own: pydantic would apply only one of two."""
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
