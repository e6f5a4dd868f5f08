"""The tools of cueline's by which a model reads the resources and prompts of an MCP server.

A server that has a tool of such a name keeps it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, Final, TypedDict, Unpack

from mcp import Client, MCPError
from mcp_types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    InputRequiredResult,
    RequestParamsMeta,
    ServerCapabilities,
    TextContent,
    Tool,
)
from pydantic import BaseModel

_MOST_PAGES: Final = 100


class AnswerParams(TypedDict):
    """What the SDK takes with each request that may ask for something."""

    meta: RequestParamsMeta
    input_responses: dict[str, Any] | None
    request_state: str | None


class Reader(Tool):
    """A tool of cueline's, which no server describes."""


def _reader(name: str, description: str, /, **parameters: object) -> Reader:
    required = [each for each in parameters if each != "arguments"]
    schema = {"type": "object", "properties": parameters, "required": required}
    return Reader(name=name, description=description, input_schema=schema)


_TEXT: Final = {"type": "string"}
RESOURCE_READERS: Final = (
    _reader("list_resources", "List the resources of the server, and templates of their URIs."),
    _reader("read_resource", "Read a resource of the server.", uri=_TEXT),
)
PROMPT_READERS: Final = (
    _reader("list_prompts", "List the prompts of the server, with their arguments."),
    _reader(
        "get_prompt",
        "Return the messages of a prompt of the server.",
        name=_TEXT,
        arguments={"type": "object", "additionalProperties": _TEXT},
    ),
)


def readers_of(capabilities: ServerCapabilities) -> tuple[Reader, ...]:
    """Return the readers for what a server says that it can have."""
    resources = RESOURCE_READERS if capabilities.resources else ()
    return (*resources, *(PROMPT_READERS if capabilities.prompts else ()))


async def unused(client: Client, seconds: float) -> set[str]:
    """Return the names of the readers that would find nothing now, or no answer in *seconds*."""
    found: set[str] = set()
    for group in (RESOURCE_READERS, PROMPT_READERS):
        try:
            async with asyncio.timeout(seconds):
                is_empty = not any((await _listing(client, group[0].name)).values())
        except (MCPError, ValueError, TimeoutError):
            is_empty = True
        found |= {each.name for each in group if is_empty}
    return found


async def read(
    client: Client, reader: str, arguments: dict[str, Any], **more: Unpack[AnswerParams]
) -> CallToolResult | InputRequiredResult:
    """Return what the reader of this name reads, as the result of a tool; *more* is the SDK's.

    Raises:
        MCPError: the server cannot answer.
        ValueError: its list does not end, or its answer is invalid.
    """
    content: list[ContentBlock] = []
    match reader:
        case "read_resource":
            found = await client.session.read_resource(
                arguments["uri"], allow_input_required=True, **more
            )
            if isinstance(found, InputRequiredResult):
                return found
            content += [EmbeddedResource(resource=each) for each in found.contents]
        case "get_prompt":
            prompt = await client.session.get_prompt(
                arguments["name"], arguments.get("arguments"), allow_input_required=True, **more
            )
            if isinstance(prompt, InputRequiredResult):
                return prompt
            for each in prompt.messages:
                content += [TextContent(text=f"{each.role}:"), each.content]
        case _:
            return CallToolResult(content=[], structured_content=await _listing(client, reader))
    return CallToolResult(content=content)


async def _listing(client: Client, reader: str) -> dict[str, list[dict[str, Any]]]:
    if reader == "list_prompts":
        return {"prompts": _plain(await every(client.list_prompts, "prompts"))}
    resources = _plain(await every(client.list_resources, "resources"))
    templates = []
    with suppress(MCPError):  # a server need not have templates
        templates = _plain(await every(client.list_resource_templates, "resource_templates"))
    return {"resources": resources, "templates": templates}


def _plain(entries: Collection[BaseModel]) -> list[dict[str, Any]]:
    left_out = {"icons", "meta", "annotations"}
    return [
        each.model_dump(mode="json", by_alias=True, exclude=left_out, exclude_none=True)
        for each in entries
    ]


async def every(ask: Callable[..., Awaitable[Any]], what: str) -> list[Any]:
    """Return all entries of a list that *ask* returns in pages, each in the field *what*.

    Raises:
        MCPError: the server cannot answer.
        ValueError: the list does not end, or an entry is invalid.
    """
    found: list[Any] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await ask(cursor=cursor)
        found += getattr(page, what)
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise ValueError(f"its list of {what} has more than {_MOST_PAGES} pages")
