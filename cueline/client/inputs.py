"""Checks the inputs of a start or message: attachments, parameters, the output's schema."""

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, JsonValue, ValidationError

from cueline.agents.agent import Agent
from cueline.config.problem import problems_of
from cueline.errors import ConfigError, ParameterValidationError
from cueline.events.agent import AgentSpec
from cueline.events.fact import json_or_text
from cueline.events.message import (
    IMAGE_LIMIT,
    Arguments,
    Attachment,
    FileBlock,
    ImageBlock,
    image_type,
)
from cueline.files import refuse_endless
from cueline.tools.arguments import check_value, output_schema, read_value, unfenced

Attachable = str | os.PathLike[str] | bytes | ImageBlock | FileBlock
"""An attachment: the path of a file, its bytes, or a block."""

_MB = 1024 * 1024
IMAGE_MB: Final = IMAGE_LIMIT // _MB
FILE_MB: Final = 20
"""The size of the largest other file, in MB."""
TOGETHER_MB: Final = 30
"""The size of all attachments of one message at most, in MB."""


def attachments_of(given: Sequence[Attachable]) -> tuple[Attachment, ...]:
    """Return the attachments of one message, read from their files.

    Raises:
        ConfigError: a file cannot be read, has another format, or is too large.
    """
    if isinstance(given, str | bytes | os.PathLike):
        raise ConfigError("attachments", f"it is {given!r:.80}; say it as in [{given!r:.80}]")
    found = tuple(map(_attachment_of, given))
    size = sum(len(each.data) * 3 // 4 for each in found)
    if size > TOGETHER_MB * _MB:
        why = f"they have {size / _MB:.0f} MB together; one message takes {TOGETHER_MB} MB"
        raise ConfigError("attachments", why)
    return found


def _attachment_of(given: Attachable) -> Attachment:
    match given:
        case ImageBlock() | FileBlock():
            return given
        case bytes():
            return attachment(given, "")
        case str() | os.PathLike():
            path = Path(given)
            return attachment(_read(path), path.name, str(path))
        case _:
            raise ConfigError("attachments", f"{given!r:.80} is no path, bytes, image or file")


def _read(path: Path) -> bytes:
    try:
        refuse_endless(path)
        with path.open("rb") as file:
            return file.read(FILE_MB * _MB + 1)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be attached: {error.strerror}") from error


def attachment(content: bytes, name: str, where: str = "attachments") -> Attachment:
    """Return *content* as an image or file, by its first bytes.

    Raises:
        ConfigError: models do not accept its format, or it is too large; the message begins with
            *where*.
    """
    image, most = image_type(content), FILE_MB
    if image:
        most = IMAGE_MB
    if len(content) > most * _MB:
        kind = "an image" if image else "a file"
        raise ConfigError(where, f"it has more than {most} MB, the most for {kind}")
    data = base64.b64encode(content).decode()
    if image:
        return ImageBlock(media_type=image, data=data, name=name)
    return FileBlock(media_type=_file_type(content, where), name=name, data=data)


def _file_type(content: bytes, where: str) -> str:
    if content.startswith(b"%PDF-"):
        return "application/pdf"
    if not content:
        raise ConfigError(where, "it is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        formats = "PNG, JPEG, GIF, WebP, PDF and UTF-8 text"
        raise ConfigError(where, f"its content is none of {formats}")
    return "text/plain"


def checked_parameters(agent: AgentSpec, given: Mapping[str, JsonValue]) -> Arguments:
    """Return *given*, with the defaults of the agent's schema, if they fit it.

    Raises:
        ParameterValidationError: the parameters do not fit; the error has the schema.
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
    """Return parameters from texts: read as JSON, unless their type in the schema is text."""
    properties = (schema or {}).get("properties")
    known = properties if isinstance(properties, dict) else {}
    return {
        name: text if _is_text(known.get(name)) else json_or_text(text)
        for name, text in texts.items()
    }


def _is_text(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string"


Output = type[BaseModel] | Mapping[str, Any]
"""A pydantic model, or a JSON schema."""


def with_output(agent: Agent, output: Output | None) -> Agent:
    """Return *agent* with *output* as the schema of its last reply; unchanged if *output* is None.

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
    """Return *text* as the declared *output*, or the reason why it does not fit.

    A Markdown fence around the text is removed first.
    """
    if isinstance(output, Mapping):
        return read_value(text, output)
    try:
        return output.model_validate(json.loads(unfenced(text))), ""
    except ValidationError as error:
        return None, str(problems_of(error, output)[0])
    except (ValueError, RecursionError) as error:
        return None, f"it is no JSON: {error}"
