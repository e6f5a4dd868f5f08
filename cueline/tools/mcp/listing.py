"""Asks MCP servers for their tools when an agent is recorded or shown."""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from cueline.errors import ConfigError, CuelineError, ToolFailedError, ToolImportError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.agent_parts import Isolation, McpServer
from cueline.tools.mcp.connection import McpConnection
from cueline.tools.mcp.oauth import Logins

_SET_BY_AGENTS: Final = {"critical", "timeout_seconds", "declared", "sensitive"}
_ASKER: Final = ThreadPoolExecutor(1, "cueline-mcp")
"""The thread with the event loop of the questions; the caller may have a loop of its own."""


class How(TypedDict, total=False):
    """How servers are asked."""

    isolation: Isolation
    """What their commands can reach, if a server does not say it."""
    unused: bool
    """Whether tools for resources and prompts count of which a server has none now."""
    logins: Logins | None
    """Keeps the logins by OAuth."""
    show: Callable[[str], None] | None
    """Shows a person the address of a new login; None: stored logins are used."""


def tools_of(
    servers: Mapping[str, McpServer], folder: Path | None = None, **how: Unpack[How]
) -> list[ToolSpec]:
    """Return the tools of *servers*, by name; the caller's thread waits for the servers.

    Raises:
        ConfigError: a server cannot be used; the message has the server's last words.
    """
    found = listed(servers, folder, **how)
    for name, each in found.items():
        if isinstance(each, CuelineError):
            why = each.message if isinstance(each, ToolFailedError) else str(each)
            raise ConfigError(f"key 'mcp.{name}'", why) from each
    tools = [tool for each in found.values() if isinstance(each, list) for tool in each]
    return sorted(tools, key=lambda tool: tool.name)


def changed_of(agent: AgentSpec, logins: Logins | None = None) -> tuple[ToolSpec, ...]:
    """Return the tools of *agent* whose definition has changed on their server, as it is now.

    Raises:
        ConfigError: a server cannot be used.
        ToolImportError: a server has a tool no more.
    """
    folder = Path(agent.workspace.path) if agent.workspace else None
    how: How = {"isolation": agent.isolation, "unused": True, "logins": logins}
    now = {tool.name: tool for tool in tools_of(agent.mcp, folder, **how)}
    pinned = [tool for tool in agent.tools if tool.server and tool.recording is None]
    for tool in pinned:
        if tool.name not in now:
            raise ToolImportError(tool.target, "the server has it no more; start a new session")
    return tuple(
        now[tool.name].model_copy(update=tool.model_dump(include=_SET_BY_AGENTS))
        for tool in pinned
        if now[tool.name].digest != tool.digest
    )


def listed(
    servers: Mapping[str, McpServer], folder: Path | None = None, **how: Unpack[How]
) -> dict[str, list[ToolSpec] | CuelineError]:
    """Return the tools of each of *servers*, or why it has none."""
    return _ASKER.submit(lambda: asyncio.run(_ask_all(servers, folder, **how))).result()


async def _ask_all(
    servers: Mapping[str, McpServer], folder: Path | None, **how: Unpack[How]
) -> dict[str, list[ToolSpec] | CuelineError]:
    answers = await asyncio.gather(*(_ask(*each, folder, **how) for each in servers.items()))
    return dict(zip(servers, answers, strict=True))


async def _ask(
    name: str, server: McpServer, folder: Path | None, *, unused: bool = False, **how: Any
) -> list[ToolSpec] | CuelineError:
    connection = McpConnection(name, server, os.environ, folder, **how)
    try:
        if unused:
            return list((await connection.specs()).values())
        return await connection.used_specs()
    except CuelineError as error:
        return error
    finally:
        await connection.close()
