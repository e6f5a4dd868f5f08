"""What the tests of the tools share."""

import json
import socket
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from msgspec.structs import replace

from cueline.actors.tool_port import ToolOrder
from cueline.errors import ToolFailedError
from cueline.events.agent import Workspace
from cueline.events.agent_parts import DEFAULT_ISOLATION
from cueline.tools.executor import ProcessToolExecutor
from cueline.tools.http_access import HttpAccess
from cueline.tools.http_request import http_get
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
def isolation():
    return DEFAULT_ISOLATION


@pytest.fixture
def use(workspace, isolation):
    def call(tool, **arguments):
        context = ToolContext(
            session="session-default/1",
            effect="1.0",
            attempt=1,
            key="session-default/1/1.0",
            folder=workspace,
            isolation=isolation,
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


@pytest.fixture
def fetch(executor, order):
    """Call a tool by the executor, and return what the model gets."""

    async def call(url, *, tool=http_get, environment=(), allow=None, private=(), **arguments):
        limits = {"max_bytes": arguments.pop("max_bytes")} if "max_bytes" in arguments else {}
        access = HttpAccess(allow=allow, private=private, **limits)
        asked = order(tool, url=url, **arguments)
        spec = asked.tool.model_copy(update={"options": access.model_dump(mode="json")})
        return await executor.call(replace(asked, tool=spec, environment=environment))

    return call


@pytest.fixture
def answer(fetch):
    async def call(url, **how):
        output = await fetch(url, **{"private": ("127.0.0.1",), **how})
        return json.loads(output.content)

    return call


@pytest.fixture
def names(monkeypatch):
    """Answer the resolver's questions: by name, one list of addresses after another."""
    known, asked, real = {}, [], socket.getaddrinfo

    def look_up(host, port, *rest, **how):
        if host not in known:
            return real(host, port, *rest, **how)
        asked.append(host)
        addresses = known[host].pop(0) if len(known[host]) > 1 else known[host][0]
        return [found for each in addresses for found in real(each, port, *rest, **how)]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    known["asked"] = asked
    return known
