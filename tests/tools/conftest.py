"""What the tests of the tools share."""

from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from cueline.actors.tool_port import ToolOrder
from cueline.errors import ToolFailedError
from cueline.events.agent import Workspace
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.tool import ToolContext, load

HERE = Path(__file__).parent


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
        """Order a tool, or one of a file beside this one: `examples:double`."""
        if isinstance(tool, str):
            tool = load(f"{HERE}/{tool.replace(':', '.py:')}")
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


@pytest.fixture
async def patient_executor():
    """One that never kills what tidies up."""
    executor = ProcessToolExecutor(grace_seconds=1000)
    yield executor
    await executor.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def warm_executor():
    """One for all tests of a file, in which no tool takes its worker along."""
    executor = ProcessToolExecutor(workers=1)
    yield executor
    await executor.close()


@pytest.fixture
def failure():
    async def failure_of(call):
        with pytest.raises(ToolFailedError) as failed:
            await call
        return failed.value

    return failure_of


@pytest.fixture
def marked(monkeypatch, tmp_path):
    """All processes that were started by this test, however they got away."""
    mark = str(tmp_path)
    monkeypatch.setenv("MARK", mark)
    return lambda: survivors(mark)


def survivors(mark):
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("MARK") == mark and process.status() != "zombie":
                found.append(process)
        except psutil.Error:
            continue
    return found
