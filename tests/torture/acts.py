"""The tools of the sessions that are killed. They write down what they do, beside the log."""

import os
import time
from threading import Event

from cueline.tools.tool import ToolContext, tool


def act(context: ToolContext, item: str, seconds: float) -> str:
    write_down(context, "start")
    Event().wait(seconds)
    write_down(context, "end")
    return f"done {item}"


def write_down(context: ToolContext, word: str) -> None:
    with (context.workspace / "journal").open("a") as journal:
        pids = f"{os.getpid()} {os.getppid()}"
        journal.write(f"{word} {context.key} {context.attempt} {time.time():.6f} {pids}\n")


@tool(read_only=True, needs_workspace=True)
def look(item: str, seconds: float, context: ToolContext) -> str:
    """Change nothing."""
    return act(context, item, seconds)


@tool(idempotent=True, needs_workspace=True)
def put(item: str, seconds: float, context: ToolContext) -> str:
    """Do something that may be done twice."""
    return act(context, item, seconds)


@tool(needs_workspace=True)
def pay(item: str, seconds: float, context: ToolContext) -> str:
    """Do something that may not."""
    return act(context, item, seconds)
