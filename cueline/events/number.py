"""What a number is that a person sets, and what is none."""

import json
import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, ValidationInfo
from pydantic_core import PydanticCustomError, PydanticKnownError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""So that no moment which is computed from a time lies beyond what a calendar holds."""
_LARGEST = 2**63 - 1
"""What is more would be recorded as this."""
_MOST_USD = Decimal(10**12)
"""So that sums come out to the cent, and an amount is a line that can be read."""
_LEAST_USD = 1 / _MOST_USD


def _no_truth(value: object) -> object:
    """Refuse a truth value, which would be taken for 1 or 0."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


def _recordable(value: int | None) -> int | None:
    """Refuse a whole number that the log cannot hold."""
    if value is not None and value > _LARGEST:
        raise PydanticKnownError("less_than_equal", {"le": _LARGEST})
    return value


def _payable(value: Decimal | None, info: ValidationInfo) -> Decimal | None:
    """Refuse an amount that nobody can mean; one that is in the log already is read as it is."""
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
"""Of what a person sets: `true` is no number."""
TIME: Final = BeforeValidator(_in_seconds)
"""Likewise, and it may say its unit."""
COUNTABLE: Final = Field(allow_inf_nan=False)
"""Neither is what no sum comes to."""
LASTING: Final = Field(allow_inf_nan=False, le=LONGEST_SECONDS)
"""And what is added to a moment comes to one. Of an annotation these are to be the first: what
stands after `TIME` would be asked of None, too."""
LARGEST: Final = AfterValidator(_recordable)
"""No bound of the field: with one of its own as well, pydantic heeds one of them."""
PAYABLE: Final = AfterValidator(_payable)
"""Of US dollars that are counted, and not only compared."""
Whole = Annotated[int, LARGEST, NUMBER]
Number = Annotated[float, COUNTABLE, NUMBER]
Time = Annotated[float, COUNTABLE, TIME]
Seconds = Annotated[float, LASTING, TIME]


def _sayable(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return *parameters*, which are sent as JSON: TOML has numbers that it has not."""
    try:
        json.dumps(parameters, allow_nan=False)
    except ValueError:
        raise ValueError("nan and inf are nothing that JSON can say") from None
    return parameters


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_sayable)]
"""What is passed to a provider as it is."""
