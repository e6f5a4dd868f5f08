"""Many children of one parent, whose process is killed ten times.

`CHILDREN=1000` in the environment makes it the whole of what was asked for: some minutes.
"""

import os

from cueline.stores.sqlite_library import sqlite_library
from cueline.testing.wait import wait_until

CHILDREN, KILLS = int(os.environ.get("CHILDREN", "60")), 10
SAID = '[[reply]]\ntext = "Done."\n'
LOOKS = f'[[reply]]\ncalls = [{{ name = "list_files", arguments = {{}} }}]\n{SAID}'
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
tools = ["list_files"]
"""


def begun():
    """Return a script that starts the children in its first reply."""
    calls = [
        f'{{ name = "delegate", arguments = {{ agent = "helper", goal = "{n}" }} }}'
        for n in range(CHILDREN)
    ]
    return f'[[reply]]\ntext = "Begin."\ncalls = [{", ".join(calls)}]\n{SAID * CHILDREN}'


def told(shell, query, type_):
    """Return the streams of the events that *query* finds, each as often as it has one."""
    if not shell.log.exists():
        return []
    db = sqlite_library().connect(shell.log)
    try:
        return [name for (name,) in db.execute(query, [type_])]
    except sqlite_library().Error:
        return []  # it is being made
    finally:
        db.close()


def ended(shell):
    """Return how many children have ended."""
    return len(told(shell, ENDS, "SessionCompleted"))


ENDS = """
SELECT streams.name FROM events JOIN streams ON streams.id = events.stream
WHERE streams.name LIKE 'session-default/one.%' AND events.type = ?
"""
TOLD = """
SELECT streams.name FROM events JOIN streams ON streams.id = events.stream
WHERE streams.name = 'inbox-default/one' AND events.type = ?
"""


# 003-057, I7: with one slot nearly all children wait while their host dies.
def test_each_end_is_told_once_though_the_process_is_killed_ten_times(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_RUNNER_WORKERS", "1")
    (shell.folder / "helper.toml").write_text(HELPER)
    (shell.folder / "helps.toml").write_text(LOOKS)
    words = ("run", "--agent", shell.agent(begun(), more=LEAD), "--id", "one", "Begin.")

    for kill in range(1, KILLS + 1):
        process = shell.start(*words)
        wait_until(lambda kill=kill: ended(shell) >= kill * CHILDREN // (KILLS + 1), within=300)
        process.kill()
        process.wait()
        words = ("resume", "one", "--inline")
    done = shell(*words)

    assert 0 == done.exit_code, done.output
    children = [f"session-default/one.1.{n}" for n in range(CHILDREN)]
    assert sorted(children) == sorted(told(shell, ENDS, "SessionCompleted"))
    assert CHILDREN == len(told(shell, TOLD, "ChildEnded"))
    assert CHILDREN == shell.types("one").count("ToolReturned")
