"""The base of all facts."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Fact(BaseModel):
    """Something that happened; it carries only data and never changes.

    `type` is a literal that keeps its meaning for ever; `SCHEMA` is the number
    of its shape, raised together with an upcaster.
    """

    # Else NaN would be written as null, which may be meant.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    SCHEMA: ClassVar[int] = 1
    FACETS: ClassVar[tuple[str, ...]] = ()
    """The fields that are copied to the audit facets; never personal data."""

    type: str
