"""Sessions with a sandbox of their own, as a program drives them."""

import pytest

import cueline
from cueline.client.runtime import open_runtime
from cueline.events.session import SandboxAttached, ToolReturned
from cueline.sandboxes.local import LocalBackend
from cueline.testing.wait import await_until
from cueline.tools.sandbox import sandbox_backend
from tests.scripted import scripted

BOTH = """
[[reply]]
calls = [{ name = "run_command", arguments = { command = "echo one > made; cat there" } }]
[[reply]]
calls = [{ name = "write_file", arguments = { path = "made", content = "two\\n" } }]
[[reply]]
calls = [{ name = "read_file", arguments = { path = "made" } }]
[[reply]]
text = "Done."
"""
WRITES = {"name": "writes", "answer": "ask", "tools": ["write_file"]}
TOOLS = ("run_command", "write_file", "read_file")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    sandbox_backend.cache_clear()
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "there").write_text("of the workspace")
    return folder


def agent(folder, **more):
    return scripted(BOTH, *TOOLS, workspace=folder, sandbox="local", **more)


def left():
    return [each.state for each in LocalBackend().find({})]


async def test_commands_and_file_tools_work_in_the_sandbox(folder, tmp_path):
    allowed = cueline.Policy(approval=("off",))
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(folder, policy=allowed), "Go.")
        result = await session.result()
        facts = [each.event async for each in session.events()]
        await await_until(lambda: not left())

    assert "Done." == result.text
    outputs = [fact.output for fact in facts if isinstance(fact, ToolReturned)]
    assert "of the workspace" in outputs[0]
    assert "two" in outputs[2]
    assert 1 == sum(isinstance(fact, SandboxAttached) for fact in facts)
    assert ["there"] == [each.name for each in folder.iterdir()]
    assert [] == left()


async def test_a_session_that_waits_for_a_person_has_no_started_sandbox(folder, tmp_path):
    """003-002, 003-073, 003-074, I12."""
    ask = cueline.Policy(approval=("off",), rules=[WRITES])
    async with open_runtime(str(tmp_path / "log.db"), on="inline") as runtime:
        session = await runtime.start(agent(folder, policy=ask), "Go.")
        await await_until(lambda: ["stopped"] == left())
        (pending,) = (await runtime.pending()).rows
        await session.approve(pending.id)
        result = await session.result()

        facts = [each.event async for each in session.events()]

    assert "Done." == result.text
    attached = [fact for fact in facts if isinstance(fact, SandboxAttached)]
    assert [1, 1] == [fact.number for fact in attached]
    assert "two" in [fact for fact in facts if isinstance(fact, ToolReturned)][-1].output
