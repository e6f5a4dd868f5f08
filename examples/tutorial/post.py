"""The tutorial's own tool."""

import time

from cueline import ToolContext, tool


@tool(needs_workspace=True)
def send_letter(to: str, text: str, context: ToolContext) -> str:
    """Send a letter by post."""
    with (context.workspace / "sent.txt").open("a") as sent:
        sent.write(f"{to}: {text} (attempt {context.attempt} of {context.key})\n")
    time.sleep(3)  # The letter is on its way; the receipt takes a while.
    return "The post office says: sent."
