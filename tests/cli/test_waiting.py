"""Many wait for people while everything dies: real processes, SIGKILL."""

import signal
import sys
from functools import partial

import pytest

from cueline.testing.wait import wait_until

DRIVER = """
import asyncio, pathlib
from cueline.runtime.inline import inline
from cueline.runtime.open_log import open_log

async def main():
    path = pathlib.Path(".cueline/log.db")
    async with open_log(path) as log, inline(log, scope=None, on_trouble=print):
        await asyncio.Event().wait()

asyncio.run(main())
"""
NAMES = [f"s{n}" for n in range(20)]
GRANTED, OTHERS = NAMES[:10], NAMES[10:]


@pytest.fixture
def drive(shell, popen):
    """Start a process that drives every session nobody drives."""
    return partial(popen, [sys.executable, "-c", DRIVER], cwd=shell.folder)


def ask(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    for name in NAMES:
        done = shell("run", "Tidy", "--agent", agent, "--detach", "--id", name)
        assert done.exit_code == 0, done.output


def deadlines(shell):
    return {each["session"]: each["deadline_at"] for each in shell.json("pending")}


def all_end_with(shell, names, type_):
    return all(shell.types(name)[-1:] == [type_] for name in names)


# 000-026, 003-002, 003-006, 003-016, 003-017, 003-019, 003-021, I12, I14
def test_those_that_were_answered_go_on_and_the_others_wait_on(shell, drive):
    ask(shell)
    first = drive()
    wait_until(lambda: all_end_with(shell, NAMES, "SessionWaiting"))
    before = deadlines(shell)

    first.send_signal(signal.SIGKILL)
    first.wait()
    for name in GRANTED:
        done = shell("approve", f"{name}.1.0.1")
        assert "nothing drives it now" in done.stdout, done.output
    drive()
    wait_until(lambda: all_end_with(shell, GRANTED, "SessionCompleted"))

    assert set(NAMES) == set(before)
    assert {name: before[name] for name in OTHERS} == deadlines(shell)
    assert all_end_with(shell, OTHERS, "SessionWaiting")
    assert [1] * 20 == [shell.types(name).count("ApprovalRequested") for name in NAMES]
