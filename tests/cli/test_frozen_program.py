"""A program of somebody's own that is frozen in a call, and comes back (design, "If it dies")."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from cueline.testing.wait import PATIENCE_SECONDS, wait_until

PROGRAM = """
import asyncio
import cueline


async def main():
    async with cueline.open_runtime(".cueline/log.db", on="inline") as runtime:
        session = await runtime.start(cueline.Agent.from_file("agent.toml"), "Go", id="one")
        async for _ in session.follow():
            pass


asyncio.run(main())
"""
TOOL = '''
from pathlib import Path
from threading import Event

from cueline import tool


@tool{declared}
def once() -> str:
    """Come back, but not from the first call."""
    first = not Path("{folder}/begun").exists()
    Path("{folder}/begun").touch()
    while first:
        Event().wait(1)
    return "done"
'''
SCRIPT = '[[reply]]\ncalls = [{ name = "once", arguments = {} }]\n[[reply]]\ntext = "Done."\n'


@pytest.fixture
def frozen(shell):
    """Return what freezes a program in its call; nobody has heard of it for long."""
    begun = []

    def freeze(declared=""):
        (shell.folder / "tool.py").write_text(TOOL.format(declared=declared, folder=shell.folder))
        (shell.folder / "program.py").write_text(PROGRAM)
        shell.agent(SCRIPT, tools=("tool.py:once",), more='[policy]\nin_doubt = "tell"\n')
        shell.log.parent.mkdir()
        program = subprocess.Popen(
            [sys.executable, "program.py"], stderr=subprocess.PIPE, text=True
        )
        begun.append(program)
        wait_until((shell.folder / "begun").exists)
        os.kill(program.pid, signal.SIGSTOP)
        with sqlite3.connect(f"{shell.log}.presence") as board:
            board.execute("UPDATE process SET beat_us = 0")
        return program

    yield freeze
    for program in begun:
        program.kill()
        program.communicate()


def test_a_read_only_call_runs_elsewhere_while_the_program_is_frozen(shell, frozen):
    frozen("(read_only=True)")

    shell.start("resume", "one", "--inline")

    shell.wait_for("one", "SessionCompleted")
    assert 2 == shell.types("one").count("ToolStarted")


# I5, I14: it ends, and the call with it; who took the session over waits no longer.
def test_a_program_that_comes_back_ends_and_is_waited_for_no_longer(shell, frozen):
    program = frozen()
    shell.start("resume", "one", "--inline")
    shell.wait_for("one", "SessionWaiting")

    os.kill(program.pid, signal.SIGCONT)

    assert "SessionOwnedError" in program.communicate(timeout=PATIENCE_SECONDS)[1]
    shell.wait_for("one", "SessionCompleted")
    assert "ToolInDoubt" in shell.types("one")
