"""The base of what facts are made of."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A part of a fact."""

    # Otherwise NaN would be written as null, which may be a valid value.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
