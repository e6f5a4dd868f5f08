"""The base class of all facts."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Fact(BaseModel):
    """Something that happened; it holds only data and never changes.

    `type` is a literal that keeps its meaning for ever; `SCHEMA` is the version
    of its shape, raised together with an upcaster.
    """

    # Otherwise NaN would be written as null, which may be a valid value.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    SCHEMA: ClassVar[int] = 1
    FACETS: ClassVar[tuple[str, ...]] = ()
    """The fields copied to the audit columns; never personal data."""

    type: str
