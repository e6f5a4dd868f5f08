"""Tools that keep a journal of their own, and wait until they are let go on."""

import os
import subprocess
from pathlib import Path
from threading import Event

from cueline.tools.tool import ToolContext, tool


def begin(context: ToolContext) -> str:
    folder = context.workspace
    with (folder / "journal").open("a") as journal:
        journal.write(f"{context.key} {context.attempt} {os.getpid()}\n")
    while not (folder / "go").exists():
        Event().wait(0.01)
    return f"done by attempt {context.attempt}"


@tool(idempotent=True, needs_workspace=True)
def repeatable(context: ToolContext) -> str:
    """Do something that may be done twice."""
    return begin(context)


@tool(needs_workspace=True)
def undeclared(context: ToolContext) -> str:
    """Do something that may not."""
    return begin(context)


@tool(idempotent=True, needs_workspace=True)
def spawning(context: ToolContext) -> str:
    """Start a process that would outlive us."""
    child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path(context.workspace / "child").write_text(str(child.pid))
    return begin(context)


@tool(idempotent=True, sensitive=True, needs_workspace=True)
def guarded(context: ToolContext) -> str:
    """Do something that a person has to allow."""
    return begin(context)


@tool(needs_workspace=True)
def commit(line: str, context: ToolContext) -> str:
    """Add a line to a file, and commit it."""
    folder = context.workspace
    with (folder.parent / "journal").open("a") as journal:
        journal.write(f"{context.key}\n")
    with (folder / "file").open("a") as file:
        file.write(f"{line}\n")
    Event().wait(0.1)
    subprocess.run(["git", "commit", "-qam", context.key], cwd=folder, check=True)
    return f"committed: {line}"
