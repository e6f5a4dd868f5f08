"""The parameters that a session is started with, checked before anything is recorded."""

from collections.abc import Mapping

from pydantic import JsonValue

from cueline.errors import ParameterValidationError
from cueline.events.agent import AgentSpec
from cueline.events.fact import json_or_text
from cueline.events.message import Arguments
from cueline.tools.arguments import check_value


def checked_parameters(agent: AgentSpec, given: Mapping[str, JsonValue]) -> Arguments:
    """Return *given*, with the defaults of the agent's schema, if they fit it.

    Raises:
        ParameterValidationError: they do not; it has the schema.
    """
    schema = agent.parameters_schema
    if schema is None:
        if given:
            raise ParameterValidationError(
                agent.name, f"it takes no parameters, such as {next(iter(given))}", {}
            )
        return {}
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    defaults = {
        name: each["default"]
        for name, each in known.items()
        if isinstance(each, dict) and "default" in each
    }
    whole = {**defaults, **given}
    if why := check_value(schema, whole):
        raise ParameterValidationError(agent.name, why, schema)
    return whole


def typed(texts: Mapping[str, str], schema: Mapping[str, JsonValue] | None) -> Arguments:
    """Return parameters given as text: JSON, unless their schema says that they are text."""
    properties = (schema or {}).get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {
        name: text if _is_text(known.get(name)) else json_or_text(text)
        for name, text in texts.items()
    }


def _is_text(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"
