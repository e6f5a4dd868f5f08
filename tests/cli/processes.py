"""Runs in processes of their own: what several tests share."""

import json

BUSY = """
[[reply]]
text = "First."
calls = [{ name = "busy", arguments = {} }]

[[reply]]
text = "Here I am."
"""
TOOL = '''
from threading import Event

from cueline import ToolContext, tool


@tool(idempotent=True, needs_workspace=True)
def busy(context: ToolContext) -> str:
    """Do something until it is let go."""
    while not (context.workspace / "go").exists():
        Event().wait(0.01)
    return "done"
'''


def running(shell, session="one", *, script=None, more=(), tools=("list_files",)):
    """Start a run whose second turn takes two minutes at its first attempt."""
    agent = shell.agent(script or shell.slow, tools=tools)
    process = shell.start("run", "Go", "--agent", agent, "--inline", "--id", session, *more)
    shell.wait_for(session, "ModelStarted", times=2)
    return process


def busy(shell, script=BUSY):
    """Start a run that is in a tool call until it is let go."""
    (shell.folder / "tool.py").write_text(TOOL)
    agent = shell.agent(script, tools=("tool.py:busy",))
    process = shell.start("run", "Go", "--agent", agent, "--inline", "--id", "one")
    shell.wait_for("one", "ToolStarted")
    return process


def let_go(shell):
    (shell.folder / "work" / "go").touch()


def inbox_types(shell):
    events = [json.loads(line) for line in shell("audit", "--json").stdout.splitlines()]
    return [event["type"] for event in events if event["stream"].startswith("inbox-")]
