"""The JSON Schema of a tool function's arguments.

A function with a parameter that has no name, or no JSON form, raises `ConfigError`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

from docstring_parser import ParseError
from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, SchemaError

from cueline.errors import ConfigError, ToolFailedError

GOOGLE = GoogleParser([*DEFAULT_SECTIONS, Section("Note", "note", SectionType.SINGULAR)])
NAMED = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


@dataclass(frozen=True, slots=True)
class Signature:
    """The arguments of one function."""

    description: str
    """The docstring, without its sections."""
    names: tuple[str, ...]
    model: type[BaseModel]
    injected: str | None
    """The parameter that the runner fills; the model does not see it."""
    returns_text: bool
    """Whether the function declares that it returns text."""

    @classmethod
    def of(cls, function: Callable[..., object], context: type) -> "Signature":
        """Read the signature of *function*; a parameter of the type *context* is injected."""
        hints = hints_of(function)
        description, texts = read_docstring(inspect.getdoc(function) or "")
        parameters = inspect.signature(function).parameters
        injected = next((name for name in parameters if hints.get(name) is context), None)
        told = {name: p for name, p in parameters.items() if name != injected}
        fields = {name: field(function, p, hints, texts) for name, p in told.items()}
        returns_text = hints.get("return") is str
        return cls(description, tuple(told), model(function, fields), injected, returns_text)

    def schema(self) -> dict[str, JsonValue]:
        """Return the JSON Schema of the arguments."""
        return schema_of(self.model)

    def bind(self, arguments: Mapping[str, JsonValue]) -> dict[str, object]:
        """Return *arguments* in the function's own types.

        Raises:
            ToolFailedError: they are invalid; the message is for the model.
        """
        try:
            values = self.model.model_validate(arguments)
        except ValidationError as error:
            faults = (f"{at(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False))
            raise ToolFailedError("invalid_arguments", "; ".join(faults)) from None
        return {name: getattr(values, f"argument_{i}") for i, name in enumerate(self.names)}


@cache
def schema_of(model: type[BaseModel]) -> dict[str, JsonValue]:
    """Return the cached JSON Schema of *model*; creating the schemas takes half of a start."""
    schema = model.model_json_schema(schema_generator=WithoutTitles)
    return {key: value for key, value in schema.items() if key != "title"}


class WithoutTitles(GenerateJsonSchema):
    """Creates schemas without titles, which would only repeat the names."""

    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:  # noqa: ARG002 - pydantic's signature
        """See `GenerateJsonSchema.field_title_should_be_set`."""
        return False


def hints_of(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of *function*, also those written as strings."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise ConfigError(subject(function), f"its annotations cannot be read: {error}") from None


def field(
    function: Callable[..., object],
    parameter: inspect.Parameter,
    hints: Mapping[str, Any],
    texts: Mapping[str, str],
) -> tuple[Any, Any]:
    """Return *parameter* as a field of a pydantic model."""
    name = parameter.name
    if parameter.kind not in NAMED:
        raise ConfigError(subject(function), f"`{parameter}` has no name to be called by")
    if name not in hints:
        raise ConfigError(subject(function), f"parameter `{name}` needs a type annotation")
    metadata = getattr(hints[name], "__metadata__", ())
    described = any(isinstance(m, FieldInfo) and m.description for m in metadata)
    default = ... if parameter.default is inspect.Parameter.empty else parameter.default
    if described or name not in texts:
        return hints[name], default
    return Annotated[hints[name], Field(description=texts[name])], default


def model(
    function: Callable[..., object], fields: Mapping[str, tuple[Any, Any]]
) -> type[BaseModel]:
    """Return the pydantic model of the arguments."""
    # An argument may be called `schema` or `json`, but a field of a pydantic model may not.
    names = {f"argument_{i}": name for i, name in enumerate(fields)}
    # The generator is also called for the keys of a TypedDict or a dataclass argument.
    config = ConfigDict(extra="forbid", alias_generator=lambda name: names.get(name, name))
    definitions: dict[str, Any] = {field: fields[name] for field, name in names.items()}
    try:
        made: type[BaseModel] = create_model("Arguments", __config__=config, **definitions)
        made.model_json_schema()
    except PydanticUserError as error:
        # Omit pydantic's hint to set `model_config`, which tools do not have.
        reason = error.message.splitlines()[0].partition(". Set ")[0]
        raise ConfigError(subject(function), reason) from None
    except SchemaError as error:  # mostly an invalid pattern
        reason = str(error).splitlines()[-1].removeprefix("error: ")
        raise ConfigError(subject(function), reason) from None
    return made


def read_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the description, and the texts of a Google-style `Args:` section by parameter.

    A docstring in another style is a description as a whole.
    """
    try:
        read = GOOGLE.parse(docstring)
    except ParseError:
        return docstring.strip(), {}
    texts = {each.arg_name: " ".join((each.description or "").split()) for each in read.params}
    return read.description or "", texts


def subject(function: Callable[..., object]) -> str:
    """Return the name of *function* for an error."""
    return f"tool {getattr(function, '__name__', function)}"


def at(location: tuple[int | str, ...]) -> str:
    """Return the place of an error in the arguments."""
    return ".".join(map(str, location)) or "arguments"
