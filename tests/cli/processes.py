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
HOLD = """
from pathlib import Path
from threading import Event

import cueline


@cueline.tool(read_only=True)
def hold(name: str, context: cueline.ToolContext) -> str:
    \"\"\"Say that it is not done, until there is a file of that name.\"\"\"
    while not Path("FOLDER", name).exists():
        context.progress(0.5)
        Event().wait(0.1)
    return ""
"""


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


def holding(shell):
    """Write a tool that holds the next reply back, and return its name."""
    (shell.folder / "hold.py").write_text(HOLD.replace("FOLDER", str(shell.folder)))
    return "hold.py:hold"


def text_in(pieces, effect):
    """Return the text of the reply of the model call *effect*."""
    return "".join(piece.text for piece in pieces if piece.effect == effect)


def told_of(call, pieces):
    """Whether the progress of *call* has come, so that its process is connected."""
    return call in [progress.effect for progress in pieces.take_progress()]
