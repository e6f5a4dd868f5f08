"""Measures calls of MCP tools beside the SDK's own client, and held changes of 10,000 files.

Both clients call the same tool of one small server over stdio each, in turn. Held changes are new
files in 100 folders: the commit is the time from a yes to the call's outcome. What it takes to
replace files that are on the disk already is the time that the disk takes to delete them.
Floor: 3 ms more than the SDK's client at the median; 1 s for the commit.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from unittest.mock import patch

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from msgspec.structs import replace

from bench.table import Row
from cueline.actors.tool_port import GivenInput, ToolOrder, ToolQuestion
from cueline.events.agent import ToolSpec, Workspace
from cueline.events.agent_parts import McpServer
from cueline.isolation.ladder import overlays
from cueline.tools.mcp.executor import McpExecutor
from cueline.tools.mcp.listing import tools_of
from cueline.tools.schemes import SchemeExecutor
from cueline.tools.shell import run_command

CALLS = 300
FILES = 100
SERVER = str(Path(__file__).parent.parent / "tests/mcp_client/server.py")


def order(
    tool: ToolSpec, folder: str, server: McpServer | None = None, **arguments: object
) -> ToolOrder:
    """Return the order of a call."""
    return ToolOrder(
        session="session-default/1",
        effect="1.0",
        attempt=1,
        key="session-default/1/1.0",
        runner="runner-1",
        epoch=1,
        tool=tool,
        arguments=arguments,
        workspace=Workspace(machine="here", path=folder),
        digest="",
        server=server,
    )


async def seconds(call: Callable[[], Awaitable[object]]) -> float:
    """Return the time of one call."""
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


async def mcp_calls(folder: str) -> tuple[float, float]:
    """Return the times of a call by the SDK and by cueline, in ms."""
    server = McpServer(command=(sys.executable, SERVER))
    tools = await asyncio.to_thread(tools_of, {"probe": server})
    asked = order(next(t for t in tools if t.name == "probe__add"), folder, server, a=1, b=2)
    parameters = StdioServerParameters(command=sys.executable, args=[SERVER])
    executor, times = McpExecutor(), ([], [])
    async with Client(stdio_client(parameters)) as client:
        await client.list_tools()
        for _ in range(CALLS):
            times[0].append(await seconds(lambda: client.call_tool("add", {"a": 1, "b": 2})))
            times[1].append(await seconds(lambda: executor.call(asked)))
    await executor.close()
    bare, ours = (1000 * median(each) for each in times)
    return bare, ours


async def held_commit(folder: str) -> float:
    """Return the time of writing 10,000 held files."""
    command = (
        f"for d in $(seq {FILES}); do mkdir d$d; "
        f"for n in $(seq {FILES}); do echo $d $n > d$d/$n; done; done"
    )
    held = run_command.spec().model_copy(update={"changes": "held"})
    executor, asked = SchemeExecutor(1), order(held, folder, command=command)
    try:
        question = await executor.call(asked)
        assert isinstance(question, ToolQuestion)
        given = GivenInput("", {"changes": "yes"}, question.state)
        return await seconds(lambda: executor.call(replace(asked, given=given)))
    finally:
        await executor.close()


def measure() -> list[Row]:
    """Return the figures; without those of held changes where nothing holds them."""
    with tempfile.TemporaryDirectory() as folder:
        bare, ours = asyncio.run(mcp_calls(folder))
    rows = [
        Row("an MCP call by the SDK's client", bare, "ms"),
        Row("what cueline adds to it", ours - bare, "ms", "≤ 3"),
    ]
    if overlays().program:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "workspace")
            place.mkdir()
            with patch.dict(os.environ, XDG_STATE_HOME=f"{folder}/state"):
                took = asyncio.run(held_commit(str(place)))
        rows.append(Row("commit held changes of 10,000 files", took, "s", "≤ 1"))
    return rows
