"""What an agent records of an MCP server's tools: names, schemas and digests.

What a server says about the effects of its tools is a claim. Whether a call may run twice, and
whether it needs an approval, comes from the agent's file.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from fnmatch import fnmatchcase
from typing import Final

from mcp_types import Tool

from cueline.errors import ConfigError
from cueline.events.agent import MCP_SCHEME, Declared, ToolSpec
from cueline.events.agent_parts import McpServer
from cueline.tools.arguments import problem_of_schema
from cueline.tools.mcp.reading import Reader

LONGEST_NAME: Final = 64
"""The most characters of a tool's name that all vendors of models take."""
_HASHED: Final = 8
_OTHER: Final = re.compile(r"[^a-zA-Z0-9_-]")


def name_for_model(server: str, tool: str) -> str:
    """Return the name `server__tool`, shortened by a hash to what models take."""
    name = _OTHER.sub("_", f"{server}__{tool}")
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(f"{server}__{tool}".encode()).hexdigest()[:_HASHED]
    return f"{name[: LONGEST_NAME - _HASHED - 1]}_{digest}"


def specs_of(name: str, server: McpServer, tools: Iterable[Tool]) -> list[ToolSpec]:
    """Return the recorded form of the *tools* of a server that the agent gets, by name.

    Raises:
        ConfigError: the schema of a tool is invalid, or two tools would have one name.
    """
    globs = ("*",) if server.tools == "search" else server.tools
    chosen = [each for each in tools if _matches(each.name, globs)]
    found: dict[str, ToolSpec] = {}
    for tool in chosen:
        spec = spec_of(name, server, tool)
        if spec.name in found:
            why = f"two of its tools are called {spec.name!r} here; leave one out with `tools`"
            raise ConfigError(f"MCP server {name}", why)
        found[spec.name] = spec
    return [found[each] for each in sorted(found)]


def spec_of(name: str, server: McpServer, tool: Tool) -> ToolSpec:
    """Return the recorded form of one tool of the server *name*.

    Raises:
        ConfigError: the schema of the tool's arguments is invalid.
    """
    parameters = tool.input_schema
    if problem := problem_of_schema(parameters):
        why = f"the schema of {tool.name} is invalid: {problem}; leave it out with `tools`"
        raise ConfigError(f"MCP server {name}", why)
    declared = _declared(server, tool)
    return ToolSpec(
        name=name_for_model(name, tool.name),
        description=tool.description or tool.title or tool.name,
        parameters=parameters,
        declared=declared,
        sensitive=_asks(server, tool.name, declared),
        target=f"{MCP_SCHEME}{name}/{tool.name}",
        in_loop=True,
        searched=server.tools == "search",
        digest=_digest(name, server, tool),
    )


def difference(spec: ToolSpec, now: ToolSpec) -> str:
    """Return how the definition of a tool has changed, as a diff of what the model sees."""
    before, after = _lines(spec), _lines(now)
    if before == after:
        return "what the server says of its effects, or its command or address, has changed"
    return "\n".join(unified_diff(before, after, "before", "now", lineterm=""))


def tool_in(spec: ToolSpec) -> str:
    """Return the name of the tool on its server."""
    return spec.target.partition("/")[2]


def _lines(spec: ToolSpec) -> list[str]:
    parameters = json.dumps(spec.parameters, indent=2, ensure_ascii=False)
    return [*spec.description.splitlines(), *parameters.splitlines()]


def _digest(name: str, server: McpServer, tool: Tool) -> str:
    """Return the digest of the definition, and of where the server is."""
    annotations = tool.annotations and tool.annotations.model_dump(mode="json", exclude_none=True)
    place = [*server.command, server.url]
    said = [name, place, tool.name, tool.description, tool.input_schema, annotations]
    said += ["reader"] * isinstance(tool, Reader)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _declared(server: McpServer, tool: Tool) -> Declared:
    if isinstance(tool, Reader) or _matches(tool.name, server.read_only):
        return "read_only"
    return "idempotent" if _matches(tool.name, server.idempotent) else "nothing"


def _asks(server: McpServer, tool: str, declared: Declared) -> bool:
    return declared != "read_only" if server.ask is None else _matches(tool, server.ask)


def _matches(tool: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(tool, glob) for glob in globs)
