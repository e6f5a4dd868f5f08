"""The JSON schema of what an agent's last reply has to be."""

from collections.abc import Mapping

from pydantic import BaseModel

from cueline.tools.arguments import check_value


def output_schema(given: object) -> object:
    """Return the JSON schema of the output that is *given* as a pydantic model or a JSON schema.

    Raises:
        ValueError: it is neither.
    """
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given.model_json_schema()
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is neither a pydantic model nor a JSON schema")  # noqa: TRY004 - pydantic takes no other
    try:
        check_value(given, None)
    except ValueError as error:
        raise ValueError(f"it is no JSON schema: {error}") from None
    return dict(given)
