"""Many children of one parent, whose process is killed ten times.

`CHILDREN=1000` in the environment makes it the whole of what was asked for: some minutes.
"""

import os
import re
from functools import partial

from cueline.cli.failure import Exit
from cueline.stores.sqlite_library import sqlite_library
from cueline.testing.wait import wait_until

CHILDREN, KILLS = int(os.environ.get("CHILDREN", "60")), 10
SAID = '[[reply]]\ntext = "Done."\n'
LOOKS = f'[[reply]]\ncalls = [{{ name = "look", arguments = {{}} }}]\n{SAID}'
LEAD = f"""
agents = ["helper.toml"]
[limits]
max_turns = {2 * CHILDREN}
max_descendants = {CHILDREN}
max_tool_calls_per_turn = {CHILDREN}
"""
HELPER = """
name = "helper"
provider = "scripted"
model = "helps.toml"
tools = ["looks.py:look"]
"""
TOOL = """
from cueline import tool


@tool(read_only=True)
async def look() -> str:
    return "Nothing."
"""


def begun():
    """Return a script that starts the children in its first reply."""
    calls = [
        f'{{ name = "delegate", arguments = {{ agent = "helper", goal = "{n}" }} }}'
        for n in range(CHILDREN)
    ]
    return f'[[reply]]\ntext = "Begin."\ncalls = [{", ".join(calls)}]\n{SAID * CHILDREN}'


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


def has_come(shell, process, share):
    """Say whether that *share* of the children has ended, or nobody is left to work on them."""
    ends = told(shell, OF_CHILDREN, "SessionCompleted")
    return len(ends) >= share * CHILDREN or process.poll() is not None


# 003-057, I7: with one slot nearly all children wait while their host dies.
def test_each_end_is_told_once_though_the_process_is_killed_ten_times(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_RUNNER_SLOTS", "1")
    (shell.folder / "looks.py").write_text(TOOL)
    (shell.folder / "helper.toml").write_text(HELPER)
    (shell.folder / "helps.toml").write_text(LOOKS)
    words = ("run", "--agent", shell.agent(begun(), more=LEAD), "--id", "one", "Begin.")

    for kill in range(1, KILLS + 1):
        process = shell.start(*words)
        share = kill / (KILLS + 1)
        wait_until(partial(has_come, shell, process, share), within=300)
        process.kill()
        process.wait()
        words = ("resume", "one", "--inline")
    if not told(shell, OF_PARENT, "SessionCompleted"):  # a late last kill finds it at its end
        done = shell(*words)
        for _ in range(CHILDREN):
            # A child that ran something at three deaths waits for a person, who lets it go on.
            paused = re.search(r"cueline resume (one\.1\.\d+)$", done.output, re.MULTILINE)
            if done.exit_code != Exit.WAITING or paused is None:
                break
            shell("resume", paused[1], "--inline")
            done = shell(*words)
        assert 0 == done.exit_code, done.output

    children = [f"session-default/one.1.{n}" for n in range(CHILDREN)]
    assert sorted(children) == sorted(told(shell, OF_CHILDREN, "SessionCompleted"))
    assert CHILDREN == len(told(shell, OF_INBOX, "ChildEnded"))
    assert CHILDREN == shell.types("one").count("ToolReturned")
    assert CHILDREN < len(told(shell, OF_CHILDREN, "SessionTakenOver"))
