"""A deploy in the middle of a session that changes what a tool takes."""

import pytest

import cueline
from cueline.errors import ToolChangedError
from cueline.testing.wait import PATIENCE_SECONDS

TOOL = '''
from pathlib import Path

from cueline import tool


@tool(sensitive=True)
def tell({parameter}: str) -> str:
    """Tell someletter."""
    return {parameter}
'''
SCRIPT = """
[[reply]]
turn = 1
calls = [{ name = "tell", arguments = { text = "Hello" } }]

[[reply]]
turn = 2
calls = [{ name = "tell", arguments = { letter = "Hello" } }]

[[reply]]
turn = 3
text = "Done."
"""


def deploy(shell):
    (shell.folder / "tool.py").write_text(TOOL.format(parameter="text"))
    agent = shell.agent(SCRIPT, tools=("tool.py:tell",), more=shell.reachable)
    asked = shell.start("run", "Go", "--agent", agent, "--inline", "--id", "one")
    assert 3 == asked.wait(PATIENCE_SECONDS)
    # Of another length: Python takes a file of the same second and size for the same.
    (shell.folder / "tool.py").write_text(TOOL.format(parameter="letter"))


@pytest.fixture
def deployed(begin):
    """Return a shell in which a session waits for a person, and its tool has changed."""
    return begin(deploy)


def resumed(shell, *words):
    process = shell.start("resume", "one", "--inline", *words)
    said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, said


def test_a_resume_names_what_changed_and_how_to_accept_it(deployed):
    before = deployed.types("one")

    code, said = resumed(deployed)

    assert 2 == code
    assert "tell (parameter 'text' was removed; parameter 'letter' was added)" in said
    assert "cueline resume one --accept-changed-tools" in said
    assert before == deployed.types("one")


def test_what_someletter_accepts_is_a_fact_and_is_not_asked_again(deployed):
    first, told = resumed(deployed, "--accept-changed-tools")

    second, said = resumed(deployed)

    assert (3, 3) == (first, second)
    assert "changed tools accepted: tell" in told
    assert "parameter" not in said
    (pending,) = deployed.json("pending")
    assert ("one.2.0.1", {"letter": "Hello"}) == (pending["id"], pending["arguments"])


def test_a_fork_takes_the_tools_as_they_are_now_where_that_is_accepted(deployed):
    words = ("fork", "one", "--at", "1", "--inline", "--id", "two")
    refused = deployed.start(*words).communicate(timeout=PATIENCE_SECONDS)[0]

    forked = deployed.start(*words, "--accept-changed-tools")

    assert "cueline fork one --at 1 --accept-changed-tools" in refused
    forked.communicate(timeout=PATIENCE_SECONDS)
    assert "ModelReplied" in deployed.types("two")


async def test_a_program_is_told_how_to_accept_it_and_goes_on(deployed):
    async with cueline.open_runtime(deployed.log, on="inline") as runtime:
        with pytest.raises(ToolChangedError, match=r"resume\('one', accept_changed_tools=True\)"):
            await runtime.resume("one")
        before = deployed.types("one")
        session = await runtime.resume("one", accept_changed_tools=True)
        await session.result()

    assert "ToolSkipped" not in before
    assert "ToolSkipped" in deployed.types("one")
