"""What a call asks a person for before it goes on."""

import hashlib
from collections.abc import Mapping, Sequence
from operator import not_
from typing import Final

from pydantic import Field, JsonValue

from cueline.events.fact import Part
from cueline.events.message import canonical_json

REQUESTS_LIMIT: Final = 16 * 1024
"""The most bytes of the requests of a call, as JSON; they are kept in memory while it waits."""


class InputRequest(Part):
    """One thing that a call asks a person for."""

    key: str
    """The name under which the call expects the answer."""
    message: str
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The JSON schema of the answer, an object of plain values; empty: a yes."""
    url: str = Field(default="", exclude_if=not_)
    """The page on which the person has to do something before a yes."""

    @property
    def values(self) -> dict[str, dict[str, JsonValue]]:
        """The schemas of the values that are asked for, by name."""
        found = self.parameters.get("properties")
        given = found if isinstance(found, dict) else {}
        return {name: each for name, each in given.items() if isinstance(each, dict)}


def digest_of(requests: Sequence[InputRequest]) -> str:
    """Return the digest of *requests*, by which an answer to them is recognised."""
    told = [each.model_dump(mode="json") for each in requests]
    return hashlib.sha256(canonical_json(told)).hexdigest()


def choices_of(schema: Mapping[str, JsonValue]) -> list[str]:
    """Return the values that *schema* allows, if it lists them."""
    found = schema.get("enum")
    return [str(each) for each in found] if isinstance(found, list) else []


def request_text(request: InputRequest) -> str:
    """Return what is asked, with the values and their choices, on one or more lines."""
    lines = [request.message]
    if request.url:
        lines.append(f"first do what this page asks for: {request.url}")
    required = request.parameters.get("required", [])
    for name, schema in request.values.items():
        told = str(schema.get("description") or schema.get("title") or "")
        choices = [f"{n}. {each}" for n, each in enumerate(choices_of(schema), 1)]
        kind = ", ".join(choices) or str(schema.get("type", "text"))
        optional = "" if isinstance(required, list) and name in required else " (optional)"
        lines.append(f"{name}: {kind}{optional}{told and f', {told}'}")
    return "\n".join(lines)
