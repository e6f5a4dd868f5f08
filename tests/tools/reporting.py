"""Tools that say how far they are."""

import asyncio
import os
import pickle
import threading

from cueline import ToolContext, tool


@tool(read_only=True)
def step(context: ToolContext) -> str:
    """Take two steps."""
    context.progress(0.5, "half of the files")
    context.progress(None, "the rest")
    return "done"


@tool(read_only=True)
async def step_in_loop(context: ToolContext) -> str:
    """Take two steps, one of them in a thread."""
    context.progress(0.5, "half of the files")
    await asyncio.to_thread(context.progress, None, "the rest")
    return "done"


@tool(read_only=True)
def step_often(times: int, context: ToolContext) -> str:
    """Take many steps, with long texts."""
    for number in range(times):
        context.progress(number / times, "é" * 1000)
    return "x" * 3_000_000


@tool(read_only=True)
def step_wrongly(context: ToolContext) -> str:
    """Say what is no share."""
    for share in (40, -1, float("nan"), True):
        context.progress(share)
    return "done"


@tool(read_only=True)
def step_elsewhere(context: ToolContext) -> str:
    """Say it in a child process, and in a copy of the context."""
    if (child := os.fork()) == 0:
        context.progress(0.1, "in a child")
        os._exit(0)
    os.waitpid(child, 0)
    pickle.loads(pickle.dumps(context)).progress(0.2, "in a copy")
    return "done"


LATE = threading.Event()


@tool(read_only=True)
def step_late(context: ToolContext) -> str:
    """Leave a thread behind that says something after the end."""

    def wait_and_say():
        LATE.wait()
        context.progress(0.9, "late")

    threading.Thread(target=wait_and_say, daemon=True).start()
    return "done"


@tool(read_only=True)
def let_late_ones_go(context: ToolContext) -> str:
    """Let the thread of the call before this one go on."""
    before = threading.active_count()
    LATE.set()
    for thread in threading.enumerate():
        if thread.daemon:
            thread.join()
    return f"{before - threading.active_count()} went on"
