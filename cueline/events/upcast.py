"""How the payloads of older schemas become today's.

When the shape of a released fact changes, its `SCHEMA` goes up by one and
`UPCASTERS` gains the step from the number before; recorded bytes stay what
they are.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]
"""Takes a payload to the next schema; pure, and at home in every old payload."""

UPCASTERS: Final[Mapping[tuple[str, int], Upcaster]] = {}
"""For a type and one of its old schemas: the step to the schema after it."""


def upcast(
    payload: Payload,
    type: str,  # noqa: A002 - the word of the log
    schema: int,
    known: int,
    steps: Mapping[tuple[str, int], Upcaster],
) -> Payload:
    """Return *payload*, of *schema*, in the schema that is *known* today.

    Raises:
        KeyError: a step is missing; a bug, for each schema once had its upcaster.
    """
    for number in range(schema, known):
        payload = steps[type, number](payload)
    return payload
