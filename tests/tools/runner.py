"""A runner that runs one command: `python runner.py WORKSPACE COMMAND`."""

import asyncio
import sys

from cueline.actors.tool_port import ToolOrder
from cueline.events.agent import Workspace
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.shell import run_command


async def main():
    order = ToolOrder(
        session="session-default/1",
        effect="1.0",
        attempt=1,
        key="session-default/1/1.0",
        runner="runner-1",
        epoch=1,
        tool=run_command.spec(),
        arguments={"command": sys.argv[2]},
        workspace=Workspace(machine="here", path=sys.argv[1]),
        digest="",
    )
    output = await ProcessToolExecutor().call(order)
    print(output.content.decode())  # noqa: T201 - it is what the test looks at


asyncio.run(main())
