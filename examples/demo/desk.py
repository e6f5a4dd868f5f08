"""The demo's own tools: slow ones, which write down each of their starts.

The journal is theirs, not cueline's: the demo reads in it what really ran.
"""

import json
import os
import time

from cueline import ToolContext, tool

SECONDS = 3.0
"""Slow enough to be killed in the middle."""


def write_down(context: ToolContext, name: str) -> None:
    """Add a line to the journal beside the workspace, durably, before anything is done."""
    line = {"tool": name, "key": context.key, "attempt": context.attempt, "pid": os.getpid()}
    journal = context.workspace.parent / "journal.jsonl"
    with journal.open("a") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


@tool(idempotent=True, needs_workspace=True)
def build_index(context: ToolContext) -> str:
    """Count the words of every text and write them to index.json. Doing it twice is harmless."""
    write_down(context, "build_index")
    time.sleep(SECONDS)
    texts = sorted(context.workspace.glob("*.txt"))
    counts = {text.name: len(text.read_text().split()) for text in texts}
    (context.workspace / "index.json").write_text(json.dumps(counts, indent=2))
    return f"indexed {len(counts)} texts, {sum(counts.values())} words"


@tool(needs_workspace=True)
def post_notice(text: str, context: ToolContext) -> str:
    """Post a notice on the board. Nothing is declared: posting twice would be seen by all."""
    write_down(context, "post_notice")
    time.sleep(SECONDS)
    with (context.workspace / "board.md").open("a") as board:
        board.write(f"- {text}\n")
    return "posted"
