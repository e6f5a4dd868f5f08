"""Converts the payloads of older schemas to the current one.

When the shape of a released fact changes, its `SCHEMA` is raised by one and
`UPCASTERS` gains the step from the number before; recorded bytes never change.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]
"""Converts a payload to the next schema; pure, and works for every old payload."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {}
"""By type and old schema: the step to the next schema."""


def upcast(
    payload: Payload,
    type: str,  # noqa: A002 - the field's name in the log
    schema: int,
    known: int,
    steps: Mapping[tuple[str, int], Upcaster],
) -> Payload:
    """Return *payload*, of *schema*, in the schema *known*.

    Raises:
        KeyError: a step is missing; a bug, because each schema has an upcaster.
    """
    for number in range(schema, known):
        payload = steps[type, number](payload)
    return payload
