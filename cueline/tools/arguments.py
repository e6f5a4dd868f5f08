"""Checks arguments and JSON replies of models against their schemas."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError
from pydantic import BaseModel, JsonValue

from cueline.errors import ToolFailedError
from cueline.events.agent import ToolSpec
from cueline.events.fact import unsayable
from cueline.events.sanitize import cut

_VALIDATORS: dict[str, Draft202012Validator] = {}
"""The validators by the tool's digest, which covers its schema."""
_MOST_VALIDATORS = 1000
_MOST_FAULTS = 5
_LONGEST_FAULT = 1000


def check_arguments(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> None:
    """Raise if *arguments* do not match the schema of the tool.

    Raises:
        ToolFailedError: they are invalid; the message for the model includes the schema.
    """
    check = _VALIDATORS.get(spec.digest) or _validator(spec)
    try:
        if check.is_valid(arguments):
            return
        faults = list(islice(map(_fault_text, check.iter_errors(arguments)), _MOST_FAULTS))
    except ValueError as error:  # for example, half a surrogate pair in a name
        faults = [f"$: {error}"]
    told = "\n".join([*faults, f"The arguments must fit: {json.dumps(spec.parameters)}"])
    raise ToolFailedError("invalid_arguments", told)


def check_call(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> str | None:
    """Return the error for the model; None if the arguments are valid."""
    try:
        check_arguments(spec, arguments)
    except ToolFailedError as error:
        return str(error)
    return None


def _validator(spec: ToolSpec) -> Draft202012Validator:
    """Return the cached validator of *spec*; creating one costs as much as a hundred checks."""
    if len(_VALIDATORS) >= _MOST_VALIDATORS:
        _VALIDATORS.clear()
    made = Draft202012Validator(spec.parameters, retriever=_refuse)
    return _VALIDATORS.setdefault(spec.digest, made)


def problem_of_schema(schema: Mapping[str, Any]) -> str:
    """Return why *schema* is no JSON schema that stands for itself; empty if it is."""
    try:
        Draft202012Validator(dict(schema), retriever=_refuse)
    except ValidationError as error:
        return cut(error.message, _LONGEST_FAULT)
    return ""


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not loaded")


def check_value(schema: Mapping[str, Any], value: Any) -> str:
    """Return why *value* does not match the JSON *schema*; empty if it does."""
    fault = next(Draft202012Validator(dict(schema)).iter_errors(value), None)
    return "" if fault is None else _fault_text(fault)


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


def read_value(text: str, schema: Mapping[str, Any]) -> tuple[Any, str]:
    """Return *text* as JSON that matches the *schema*, or the reason why it does not.

    A Markdown fence around the JSON is ignored.
    """
    try:
        value = json.loads(unfenced(text))
        if found := unsayable(value):
            return None, f"it is no JSON: {found}"
    except (ValueError, RecursionError) as error:
        return None, f"it is no JSON: {error}"
    try:
        problem = check_value(schema, value)
    except ValueError as error:  # for example, half a surrogate pair in a name
        problem = f"$: {error}"
    return (None, problem) if problem else (value, "")


def unfenced(text: str) -> str:
    """Return *text* without a Markdown fence around it."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 1 and lines[0].startswith("```") and lines[-1] == "```"
    return "\n".join(lines[1:-1]) if fenced else text


def _fault_text(fault: ValidationError) -> str:
    place = "".join([f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault.instance_path])
    return f"${place}: {cut(' or '.join(_reasons(fault)), _LONGEST_FAULT)}"


def _reasons(fault: ValidationError) -> Iterator[str]:
    """Yield the faults; if no alternative matches, the fault of each."""
    alternatives = fault.kind.as_dict().get("context")
    if not alternatives:
        yield fault.message
        return
    for alternative in alternatives:
        for inner in alternative:
            yield from _reasons(inner)
