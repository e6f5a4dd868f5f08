"""Logs that are cut, changed or removed under a run."""

import pytest

SABOTAGE = """
import os, pathlib, shutil
from cueline import tool
from tests.damage import change

@tool(idempotent=True)
async def remove_log() -> None:
    shutil.rmtree({folder!r})

@tool(idempotent=True)
async def cut_log() -> None:
    os.truncate({folder!r} + "/log.db", 0)

@tool(idempotent=True)
async def change_log() -> None:
    change(pathlib.Path({folder!r}, "log.db"), "UPDATE events SET actor = 'user' WHERE version = 2")

@tool(idempotent=True)
async def leave_a_mark() -> None:
    pathlib.Path({mark!r}).touch()
"""
SABOTAGES = """
[[reply]]
calls = [{ name = "remove_log", arguments = {} }]

[[reply]]
calls = [{ name = "leave_a_mark", arguments = {} }]

[[reply]]
text = "Done."
"""


@pytest.fixture
def mark(shell):
    """What is there once a session went on after its log was damaged."""
    return shell.folder / "mark"


@pytest.fixture
def sabotage(shell, mark):
    """Return what runs a session whose first call does something to its log."""

    def run(tool):
        tools = SABOTAGE.format(folder=str(shell.log.parent), mark=str(mark))
        (shell.folder / "sabotage.py").write_text(tools)
        names = f"sabotage.py:{tool}", "sabotage.py:leave_a_mark"
        agent = shell.agent(SABOTAGES.replace("remove_log", tool), tools=names)
        return shell("run", "Go", "--agent", agent, "--inline")

    return run


def test_a_session_whose_log_is_cut_ends_at_once_and_says_so(sabotage, mark):
    done = sabotage("cut_log")

    assert done.exit_code == 1
    assert ".cueline/log.db: the log was cut short while it was in use" in done.stderr
    assert not mark.exists()


def test_no_success_is_told_of_a_session_that_cannot_be_read_back(sabotage):
    done = sabotage("change_log")

    assert done.exit_code == 1
    assert "it does not follow from the event before it" in done.stderr
    assert "completed ·" not in done.stdout


def test_a_session_whose_log_is_removed_ends_at_once_and_says_so(shell, sabotage, mark):
    done = sabotage("remove_log")

    assert done.exit_code == 1
    assert ".cueline/log.db: the log was removed while it was in use" in done.stderr
    assert "hint: put it back if it was moved" in done.stderr
    assert not mark.exists()
    assert not shell.log.parent.exists()
