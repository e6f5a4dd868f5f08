"""How the payloads of older schemas become today's.

When the shape of a fact changes, its `SCHEMA` goes up by one and `UPCASTERS`
gains the step from the number before; recorded bytes stay what they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

from cueline.events.number import LONGEST_SECONDS

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]
"""Takes a payload to the next schema; pure, and at home in every old payload."""

_UNBOUNDED = (
    ("retry", "base_seconds"),
    ("retry", "cap_seconds"),
    ("policy", "approval_seconds"),
)


def _wider(payload: Payload) -> Payload:
    """Return it as it is: what schema 2 adds is at its default in schema 1."""
    return payload


def _bounded(payload: Payload) -> Payload:
    """Likewise, but for the times of its agent that schema 2 bounds: they do not end either."""
    agent = dict(payload["agent"])
    for part, time in _UNBOUNDED:
        agent[part] = {**agent[part], time: min(agent[part][time], LONGEST_SECONDS)}
    return {**payload, "agent": agent}


UPCASTERS: Mapping[tuple[str, int], Upcaster] = {
    ("MessageReceived", 1): _wider,
    ("MessageRefused", 1): _wider,
    ("ModelFailed", 1): _wider,
    ("ModelReplied", 1): _wider,
    ("SessionForked", 1): _bounded,
    ("SessionStarted", 1): _bounded,
    ("StartAsked", 1): _bounded,
}
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
