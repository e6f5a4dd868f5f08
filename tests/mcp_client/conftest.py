"""Orders for the tools of MCP servers, and an executor that runs them."""

import sys
from pathlib import Path

import pytest

from cueline.actors.tool_port import ToolOrder
from cueline.events.agent import Workspace
from cueline.events.agent_parts import McpServer
from cueline.tools.mcp.executor import McpExecutor
from cueline.tools.mcp.listing import tools_of

HERE = Path(__file__).parent
PROBE = McpServer(command=(sys.executable, str(HERE / "server.py")))


@pytest.fixture
def order(tmp_path):
    def make(
        name, server=PROBE, /, *, session="session-default/1", tool=None, before=False, **arguments
    ):
        """Order the tool of a server by its name for the model."""
        if tool is None:
            tool = next(t for t in tools_of({"probe": server}, tmp_path) if t.name == name)
        return ToolOrder(
            session=session,
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            runner="runner-1",
            epoch=1,
            tool=tool,
            arguments=arguments,
            workspace=Workspace(machine="here", path=str(tmp_path)),
            digest="",
            server=server,
            called_before=before,
            traceparent=f"00-{1:032x}-{1:016x}-01",
        )

    return make


@pytest.fixture(scope="session")
def probe_tools():
    return {tool.name: tool for tool in tools_of({"probe": PROBE})}


@pytest.fixture
def probe(order, probe_tools):
    """Order a tool of the usual server, without asking the server for its tools again."""

    def make(name, /, *, changed=None, **arguments):
        tool = probe_tools[f"probe__{name}"].model_copy(update=changed or {})
        return order(name, tool=tool, **arguments)

    return make


@pytest.fixture
async def executor():
    executor = McpExecutor()
    yield executor
    await executor.close()
