"""What a number is that a person sets, and what is none."""

import json
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue
from pydantic_core import PydanticKnownError

LONGEST_SECONDS: Final = 10 * 366 * 86_400.0
"""So that no moment which is computed from a time lies beyond what a calendar holds."""


def _no_truth(value: object) -> object:
    """Refuse a truth value, which would be taken for 1 or 0."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


NUMBER: Final = BeforeValidator(_no_truth)
"""Of what a person sets: `true` is no number."""
COUNTABLE: Final = Field(allow_inf_nan=False)
"""Neither is what no sum comes to."""
LASTING: Final = Field(allow_inf_nan=False, le=LONGEST_SECONDS)
"""And what is added to a moment comes to one. Of an annotation these are to be the first: what
stands after `NUMBER` would be asked of None, too."""
Whole = Annotated[int, NUMBER]
Number = Annotated[float, COUNTABLE, NUMBER]
Seconds = Annotated[float, LASTING, NUMBER]


def _sayable(parameters: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return *parameters*, which are sent as JSON: TOML has numbers that it has not."""
    try:
        json.dumps(parameters, allow_nan=False)
    except ValueError:
        raise ValueError("nan and inf are nothing that JSON can say") from None
    return parameters


Parameters = Annotated[dict[str, JsonValue], AfterValidator(_sayable)]
"""What is passed to a provider as it is."""
