"""The JSON Schema of the events, made from the classes of the facts.

It describes a payload with its long values in their places, as `Codec.decode` reads it. The
field `type` may be missing, because the log has it in a column.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic.json_schema import models_json_schema

from cueline.events.codec import FACTS

_DIALECT: Final = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def schema_of(type: str) -> dict[str, Any]:  # noqa: A002 - the field's name in the log
    """Return the schema of the event *type*, with its parts in `$defs`.

    Raises:
        KeyError: there is no such event; a bug, because `check_type` refuses it.
    """
    schema = FACTS[type].model_json_schema()
    return {**_DIALECT, **_numbered({type: schema})[type], **_defs(schema)}


def schema_of_all() -> dict[str, Any]:
    """Return one document with the schema of each event, and of the parts, in its `$defs`."""
    _, document = models_json_schema([(fact, "validation") for fact in FACTS.values()])
    return {**_DIALECT, **_defs(document)}


def _defs(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"$defs": _numbered(document["$defs"])} if "$defs" in document else {}


def _numbered(schemas: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schemas*, those of events with the number of their shape as a comment."""
    return {
        name: {"$comment": f"schema {FACTS[name].SCHEMA}", **each} if name in FACTS else each
        for name, each in schemas.items()
    }
