"""Whether arguments fit the schema that the model was told."""

import json
from collections.abc import Mapping

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import JsonValue

from cueline.errors import ToolFailedError
from cueline.events.agent import ToolSpec

_VALIDATORS: dict[str, Draft202012Validator] = {}
"""By the digest of a tool, which stands for its schema."""
_MOST_VALIDATORS = 1000


def check_arguments(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> None:
    """Do nothing if *arguments* fit.

    Raises:
        ToolFailedError: they do not; tell the model, which is shown the schema again.
    """
    check = _VALIDATORS.get(spec.digest) or _validator(spec)
    # To look for the best of no faults takes four times as long as to find none.
    if check.is_valid(arguments):
        return
    fault = best_match(check.iter_errors(arguments))
    if fault is not None:
        schema = json.dumps(spec.parameters)
        message = f"{fault.json_path}: {fault.message[:1000]}\nThe arguments must fit: {schema}"
        raise ToolFailedError("invalid_arguments", message)


def _validator(spec: ToolSpec) -> Draft202012Validator:
    """Return what checks against the schema of *spec*; to make one costs a hundred checks."""
    if len(_VALIDATORS) >= _MOST_VALIDATORS:
        _VALIDATORS.clear()
    return _VALIDATORS.setdefault(spec.digest, Draft202012Validator(spec.parameters))
