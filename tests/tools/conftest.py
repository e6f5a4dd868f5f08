"""What the tests of the tools share."""

import pytest

from cueline.actors.tool import ToolOrder
from cueline.events.agent import Workspace
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.tool import ToolContext


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("hidden")
    return folder


@pytest.fixture
def use(workspace):
    def call(tool, **arguments):
        context = ToolContext(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            folder=workspace,
        )
        return tool.run(arguments, context)

    return call


@pytest.fixture
def order(workspace):
    def make(tool, **arguments):
        return ToolOrder(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            runner="runner-1",
            epoch=1,
            tool=tool.spec(),
            arguments=arguments,
            workspace=Workspace(machine="here", path=str(workspace)),
            digest="",
        )

    return make


@pytest.fixture
async def executor():
    executor = ProcessToolExecutor(grace_seconds=0.5)
    yield executor
    await executor.close()
