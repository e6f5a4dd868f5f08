"""The structured output of an agent: what it said last, read as JSON of a declared shape."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from cueline.agents.agent import Agent
from cueline.config.problem import problems_of
from cueline.errors import ConfigError
from cueline.tools.arguments import output_schema, read_value, unfenced

Output = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON schema."""


def with_output(agent: Agent, output: Output | None) -> Agent:
    """Return *agent* with *output* as the form of its last reply; None: with its own.

    Raises:
        ConfigError: *output* is neither a pydantic model nor a JSON schema.
    """
    if output is None:
        return agent
    try:
        return agent.model_copy(update={"output": output_schema(output)})
    except ValueError as error:
        raise ConfigError("output", str(error)) from None


def read_output(text: str, output: Output) -> tuple[Any, str]:
    """Return what *text* says as *output* declares it, and why it does not, if so.

    A Markdown fence around it is left out.
    """
    if isinstance(output, Mapping):
        return read_value(text, output)
    try:
        return output.model_validate(json.loads(unfenced(text))), ""
    except ValidationError as error:
        return None, str(problems_of(error, output)[0])
    except (ValueError, RecursionError) as error:
        return None, f"it is no JSON: {error}"
