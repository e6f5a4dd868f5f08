"""The structured output of an agent: what it said last, read as JSON of a declared shape."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from cueline.config.problem import problems_of
from cueline.errors import ConfigError
from cueline.tools.arguments import check_value

Output = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON schema."""


def check_output(output: object) -> None:
    """Refuse what is no shape of an output.

    Raises:
        ConfigError: name a pydantic model or a JSON schema.
    """
    if output is None or isinstance(output, Mapping):
        return
    if not (isinstance(output, type) and issubclass(output, BaseModel)):
        raise ConfigError("output", f"{output!r} is neither a pydantic model nor a JSON schema")


def read_output(text: str, output: Output) -> tuple[Any, str]:
    """Return what *text* says as *output* declares it, and why it does not, if so.

    A Markdown fence around it is left out.
    """
    try:
        value = json.loads(_unfenced(text))
    except ValueError as error:
        return None, f"it is no JSON: {error}"
    if isinstance(output, Mapping):
        problem = check_value(output, value)
        return (None, problem) if problem else (value, "")
    try:
        return output.model_validate(value), ""
    except ValidationError as error:
        return None, str(problems_of(error, output)[0])


def _unfenced(text: str) -> str:
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1] == "```"
    return "\n".join(lines[1:-1]) if fenced else text
