"""A runner that runs commands as its standard input asks, each a line of JSON."""

import asyncio
import json
import sys

from cueline.actors.tool_port import ToolOrder
from cueline.errors import ToolFailedError
from cueline.events.agent import Workspace
from cueline.events.agent_parts import Isolation
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.shell import run_command


def order(asked):
    return ToolOrder(
        session="session-default/1",
        effect="1.0",
        attempt=1,
        key="session-default/1/1.0",
        runner="runner-1",
        epoch=1,
        tool=run_command.spec(),
        arguments={"command": asked["command"]},
        workspace=Workspace(machine="here", path=asked["workspace"]),
        digest="",
        isolation=Isolation.model_validate(asked["isolation"]),
        overlay=asked["overlay"],
    )


async def main():
    executor = ProcessToolExecutor(hidden=sys.argv[1:])
    for line in iter(sys.stdin.readline, ""):
        try:
            said = (await executor.call(order(json.loads(line)))).content.decode()
        except ToolFailedError as error:
            said = error.message
        print(json.dumps(said), flush=True)  # noqa: T201 - it is what the tests read


asyncio.run(main())
