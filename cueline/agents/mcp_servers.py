"""The MCP servers of an agent: from its own keys, and from the file that other clients use."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from cueline.config.environment import HERE
from cueline.config.problem import URL, problems_of
from cueline.errors import ConfigError
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import Isolation, McpServer, is_secret, problem_of, variables_in
from cueline.providers.mcp_logins import McpLogins

_NAME: Final = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_BRACED: Final = re.compile(r"\$\{([A-Za-z_]\w*)\}", re.ASCII)
_SERVERS: Final = TypeAdapter(dict[str, McpServer])
_SAME: Final = ("env", "url", "headers")
"""The keys of a server in `.mcp.json` that mean the same here."""
_KNOWN: Final = {*_SAME, "command", "args", "type", "description", "disabled"}


def checked_servers(servers: Mapping[str, McpServer]) -> Mapping[str, McpServer]:
    """Return *servers*.

    Raises:
        ValueError: a server cannot be meant; the message names it and the correct form.
    """
    for name, server in servers.items():
        if (problem := _problem(name, server)) is not None:
            raise ValueError(f"{name}: {problem}")
    return servers


def _problem(name: str, server: McpServer) -> str | None:
    told = {
        "the name has up to 32 letters, digits, - and single _": not _NAME.fullmatch(name),
        "it needs a `command` (a list) or a `url`, and not both": (
            bool(server.command) == bool(server.url)
        ),
        f"{server.url!r} is no http address without user and password": (
            bool(server.url) and not re.fullmatch(URL, server.url)
        ),
        "`env` is for a command; a `url` takes `headers`": bool(server.url and server.env),
        "`isolation` is for a command, and its `url` is elsewhere": bool(
            server.url and server.isolation
        ),
        "`headers` are for a url; a `command` takes `env`": bool(server.command and server.headers),
        "`oauth` is for a url": bool(server.command and server.oauth),
        "`client_secret` would be recorded; write $NAME, and set that variable": (
            server.oauth is not None
            and not re.fullmatch(r"(\$[A-Za-z_]\w*)?", server.oauth.client_secret, re.ASCII)
        ),
    }
    told |= {
        f"{variable} would be recorded; write ${variable}, and set that variable": (
            is_secret(variable) and not list(variables_in({variable: value}))
        )
        for variable, value in server.env.items()
    }
    fault = next((words for words, is_so in told.items() if is_so), None)
    return fault or problem_of(server.headers) or None


def tools_of(
    servers: dict[str, McpServer], folder: Path | None, isolation: Isolation
) -> list[ToolSpec]:
    """Return the tools of MCP servers.

    Raises:
        ConfigError: the MCP SDK is not installed, or a server cannot be used.
    """
    try:
        from cueline.tools.mcp import listing  # noqa: PLC0415 - the SDK is an extra
    except ImportError as error:
        why = f"the MCP SDK is missing ({error.name}); install cueline[mcp]"
        raise ConfigError("key 'mcp'", why) from error
    return listing.tools_of(servers, folder, isolation=isolation, logins=McpLogins(HERE))


def servers_in(path: Path) -> dict[str, McpServer]:
    """Return the servers of a file like `.mcp.json`, in which `${NAME}` names a variable.

    Raises:
        ConfigError: the file is missing or wrong; the message names the server.
    """
    try:
        table = json.loads(path.read_bytes())
        servers = table["mcpServers"]
        found = _SERVERS.validate_python(
            {n: _converted(each) for n, each in servers.items() if not each.get("disabled")}
        )
        return dict(checked_servers(found))
    except OSError as error:
        raise ConfigError(str(path), f"it cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise ConfigError(str(path), str(problems_of(error, McpServer)[0])) from None
    except (KeyError, TypeError, AttributeError):
        why = 'it is not of the form {"mcpServers": {NAME: {"command": …}}}'
        raise ConfigError(str(path), why) from None
    except ValueError as error:
        raise ConfigError(str(path), str(error)) from None


def _converted(server: dict[str, Any]) -> dict[str, Any]:
    """Return the table of one server in cueline's words.

    Raises:
        ValueError: the server uses something that cueline does not have.
    """
    if unknown := sorted(server.keys() - _KNOWN):
        raise ValueError(f"cueline does not know the key {unknown[0]!r} of a server")
    if server.get("type") == "sse":
        raise ValueError("the transport sse is deprecated; use the server's `http` address")
    table: dict[str, Any] = {key: _plain(server[key]) for key in _SAME if key in server}
    if "command" in server:
        table["command"] = [_plain(each) for each in [server["command"], *server.get("args", ())]]
    return table


def _plain(value: Any) -> Any:
    """Return *value* with `$NAME` for each `${NAME}`."""
    match value:
        case str():
            return _BRACED.sub(r"$\1", value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
    return value
