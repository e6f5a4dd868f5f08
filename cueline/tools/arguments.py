"""Whether arguments fit the schema that the model was told."""

import json
from collections.abc import Mapping
from functools import lru_cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import JsonValue

from cueline.errors import ToolFailedError
from cueline.events.agent import ToolSpec


def check_arguments(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> None:
    """Do nothing if *arguments* fit.

    Raises:
        ToolFailedError: they do not; tell the model, which is shown the schema again.
    """
    schema = json.dumps(spec.parameters)
    check = validator(schema)
    # To look for the best of no faults takes four times as long as to find none.
    if check.is_valid(arguments):
        return
    fault = best_match(check.iter_errors(arguments))
    if fault is not None:
        message = f"{fault.json_path}: {fault.message[:1000]}\nThe arguments must fit: {schema}"
        raise ToolFailedError("invalid_arguments", message)


@lru_cache(maxsize=1000)
def validator(schema: str) -> Draft202012Validator:
    """Return what checks against *schema*; to make one costs a hundred checks."""
    return Draft202012Validator(json.loads(schema))
