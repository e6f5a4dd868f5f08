"""The base of what facts are made of."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a fact."""

    # Otherwise NaN would be written as null, which may be a valid value.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


def shared_fields(given: object, kind: type[BaseModel]) -> dict[str, Any]:
    """Return, by name, the values in *given* of the fields that *kind* has, too."""
    names = kind.model_fields.keys() - {"type"}
    return {name: getattr(given, name) for name in names if hasattr(given, name)}
