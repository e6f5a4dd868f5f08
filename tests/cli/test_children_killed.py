"""Many children of one parent, whose process is killed ten times; fewer in the gate, five times.

`CHILDREN=1000` in the environment makes the long one the whole of what was asked for: some minutes.
"""

import os
import re
from functools import partial
from math import ceil

import pytest

from cueline.cli.failure import Exit
from cueline.sqlite_library import sqlite_library
from cueline.testing.wait import wait_until

MANY = int(os.environ.get("CHILDREN", "60"))
SAID = '[[reply]]\ntext = "Done."\n'
LOOKS = f'[[reply]]\ncalls = [{{ name = "look", arguments = {{}} }}]\n{SAID}'
HELPER = """
name = "helper"
provider = "scripted"
model = "helps.toml"
tools = ["looks.py:look"]
"""
TOOL = """
import asyncio
from pathlib import Path

from cueline import tool

ALLOWED, LOOKS = Path({folder!r}, "allowed"), Path({folder!r}, "looks")


@tool(read_only=True)
async def look() -> str:
    while LOOKS.stat().st_size >= ALLOWED.stat().st_size:
        await asyncio.sleep(0.01)
    with LOOKS.open("a") as looks:
        looks.write(".")
    return "Nothing."
"""
"""It waits while it was called as often as is allowed: else all may end before a slow kill."""


def lead(children):
    """Return what an agent with that many children has in its file."""
    return f"""
agents = ["helper.toml"]
[limits]
max_turns = {2 * children}
max_descendants = {children}
max_tool_calls_per_turn = {children}
"""


def begun(children):
    """Return a script that starts the children in its first reply."""
    calls = [
        f'{{ name = "delegate", arguments = {{ agent = "helper", goal = "{n}" }} }}'
        for n in range(children)
    ]
    return f'[[reply]]\ntext = "Begin."\ncalls = [{", ".join(calls)}]\n{SAID * children}'


OF_CHILDREN = "streams.name LIKE 'session-default/one.%'"
OF_INBOX = "streams.name = 'inbox-default/one'"
OF_PARENT = "streams.name = 'session-default/one'"


def told(shell, where, type_):
    """Return the streams of the events of that type, each as often as it has one."""
    if not shell.log.exists():
        return []
    db = sqlite_library().connect(shell.log)
    try:
        joined = "SELECT streams.name FROM events JOIN streams ON streams.id = events.stream"
        rows = db.execute(f"{joined} WHERE {where} AND events.type = ?", [type_])
        return [name for (name,) in rows]
    except sqlite_library().Error:
        return []  # it is being made
    finally:
        db.close()


def has_come(shell, process, ended):
    """Say whether that many children have ended, or nobody is left to work on them."""
    ends = told(shell, OF_CHILDREN, "SessionCompleted")
    return len(ends) >= ended or process.poll() is not None


# 003-057, I7: with one slot nearly all children wait while their host dies.
@pytest.mark.parametrize(
    ("children", "kills"),
    [
        pytest.param(30, 5, id="sample"),
        pytest.param(MANY, 10, id="whole", marks=pytest.mark.long),
    ],
)
def test_each_end_is_told_once_however_often_the_process_is_killed(
    shell, monkeypatch, children, kills
):
    monkeypatch.setenv("CUELINE_RUNNER_SLOTS", "1")
    (shell.folder / "looks.py").write_text(TOOL.format(folder=str(shell.folder)))
    (shell.folder / "looks").touch()
    (shell.folder / "helper.toml").write_text(HELPER)
    (shell.folder / "helps.toml").write_text(LOOKS)
    words = (
        "run",
        "--agent",
        shell.agent(begun(children), more=lead(children)),
        "--id",
        "one",
        "Begin.",
    )

    for kill in range(1, kills + 1):
        ended = children * kill / (kills + 1)
        # A look that was killed may have counted.
        (shell.folder / "allowed").write_text("." * (ceil(ended) + kill))
        process = shell.start(*words)
        wait_until(partial(has_come, shell, process, ended), within=300)
        process.kill()
        process.wait()
        words = ("resume", "one", "--inline")
    (shell.folder / "allowed").write_text("." * children * children)
    if not told(shell, OF_PARENT, "SessionCompleted"):  # a late last kill finds it at its end
        done = shell(*words)
        for _ in range(children):
            # A child that ran something at three deaths waits for a person, who lets it go on.
            paused = re.search(r"cueline resume (one\.1\.\d+)$", done.output, re.MULTILINE)
            if done.exit_code != Exit.WAITING or paused is None:
                break
            shell("resume", paused[1], "--inline")
            done = shell(*words)
        assert 0 == done.exit_code, done.output

    names = [f"session-default/one.1.{n}" for n in range(children)]
    assert sorted(names) == sorted(told(shell, OF_CHILDREN, "SessionCompleted"))
    assert children == len(told(shell, OF_INBOX, "ChildEnded"))
    assert children == shell.types("one").count("ToolReturned")
    assert children < len(told(shell, OF_CHILDREN, "SessionTakenOver"))
