"""The client that the authors' suite tests: `conformance_client.py URL`.

It gets the tools of the server at URL as an agent does. It calls each once, or what the suite
asks for. It says yes to each question, and logs in by OAuth like a person who agrees to all.
"""

import asyncio
import json
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import httpx2
from mcp_types import InputRequiredResult

from cueline.actors.tool_port import GivenInput
from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent_parts import McpOAuth, McpServer
from cueline.tools.mcp.connection import McpConnection
from cueline.tools.mcp.definition import tool_in
from cueline.tools.mcp.executor import question_of, responses_of

DOCUMENT = "https://conformance-test.local/client-metadata.json"
TRACE = f"00-{1:032x}-{1:016x}-01"
VALUES: dict[str, Any] = {"string": "text", "integer": 5, "number": 5, "boolean": True}


def arguments_for(schema: dict[str, Any]) -> dict[str, Any]:
    """Return an argument for each parameter, by its type."""
    given = schema.get("properties", {})
    return {name: VALUES.get(each.get("type"), "text") for name, each in given.items()}


class MemoryLogins:
    """Keeps logins in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def load(self, server: str) -> str | None:
        return self.kept.get(server)

    def save(self, server: str, login: str) -> None:
        self.kept[server] = login

    def lock(self, server: str) -> AbstractContextManager[None]:
        del server
        return nullcontext()


def agree(address: str) -> None:
    """Follow the address as a browser does whose user agrees."""

    async def follow() -> None:
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            await browser.get(address)

    following.append(asyncio.create_task(follow()))


following: list[asyncio.Task[None]] = []


async def called(connection: McpConnection, tool: str, arguments: dict[str, Any]) -> None:
    result = await connection.call(tool, arguments, TRACE)
    if isinstance(result, InputRequiredResult):
        asked = question_of(result)
        answers = {each.key: arguments_for(each.parameters or {}) for each in asked.requests}
        given = responses_of(GivenInput("", answers))
        await connection.call(tool, arguments, TRACE, answers=given, state=asked.state)


async def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    document = DOCUMENT if scenario == "auth/basic-cimd" else ""
    client = McpOAuth(
        client_id=context.get("client_id", document),
        client_secret="$CLIENT_SECRET" if "client_secret" in context else "",
    )
    server = McpServer(url=sys.argv[1], oauth=client if scenario.startswith("auth/") else None)
    environ = os.environ | {"CLIENT_SECRET": context.get("client_secret", "")}
    connection = McpConnection("suite", server, environ, logins=MemoryLogins(), show=agree)
    try:
        specs = (await connection.specs()).values()
        wanted = context.get("toolCalls")
        calls = [(tool_in(spec), arguments_for(spec.parameters)) for spec in specs]
        if wanted is not None:
            calls = [(each["name"], each["arguments"]) for each in wanted]
        for tool, arguments in calls:
            try:
                await called(connection, tool, arguments)
            except ToolFailedError as error:
                sys.stderr.write(f"{tool}: {error}\n")
    except (ToolFailedError, ConfigError) as error:
        sys.stderr.write(f"{error}\n")
    await connection.close()


asyncio.run(main())
