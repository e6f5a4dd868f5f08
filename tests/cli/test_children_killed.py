"""Many children of one parent, whose process is killed again and again."""

from cueline.stores.sqlite_library import sqlite_library
from cueline.testing.wait import wait_until

CHILDREN, KILLS = 30, 2
SAID = '[[reply]]\ntext = "Done."\n'
LOOKS = f'[[reply]]\ncalls = [{{ name = "list_files", arguments = {{}} }}]\n{SAID}'
LEAD = 'agents = ["helper.toml"]\n[limits]\nmax_turns = 500\n'
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


ENDS = """
SELECT streams.name FROM events JOIN streams ON streams.id = events.stream
WHERE streams.name LIKE 'session-default/one.%' AND events.type = ?
"""
TOLD = """
SELECT streams.name FROM events JOIN streams ON streams.id = events.stream
WHERE streams.name = 'inbox-default/one' AND events.type = ?
"""


# 003-057, I7: after a third death without progress a child would wait for a person.
def test_each_end_is_told_once_though_the_process_is_killed_again_and_again(shell):
    (shell.folder / "helper.toml").write_text(HELPER)
    (shell.folder / "helps.toml").write_text(LOOKS)
    agent = shell.agent(begun(), more=LEAD)
    words = ("run", "--agent", agent, "--id", "one", "Begin.")

    for kill in range(1, KILLS + 1):
        process = shell.start(*words)
        least = kill * CHILDREN // (KILLS + 2)
        wait_until(lambda least=least: len(told(shell, ENDS, "SessionCompleted")) >= least)
        process.kill()
        process.wait()
        words = ("resume", "one", "--inline")
    done = shell(*words)

    assert 0 == done.exit_code, done.output
    children = [f"session-default/one.1.{n}" for n in range(CHILDREN)]
    assert sorted(children) == sorted(told(shell, ENDS, "SessionCompleted"))
    assert CHILDREN == len(told(shell, TOLD, "ChildEnded"))
    assert CHILDREN == shell.types("one").count("ToolReturned")
