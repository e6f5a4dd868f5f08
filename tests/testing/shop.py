"""Tools of a shop, whose till is a file: some can be repeated, and some only say so."""

import os
import threading
from pathlib import Path

from cueline import Agent, ToolContext, tool


def till():
    return Path(os.environ["SHOP_TILL"])


def empty():
    till().write_text("")


def takings():
    return till().read_text().splitlines()


def take(line):
    with till().open("a") as file:
        file.write(f"{line}\n")


@tool(read_only=True)
def look(item: str) -> str:
    """Look at the price of an item."""
    return f"{item} costs 3"


@tool
def pay(amount: int) -> str:
    """Pay, without a key."""
    take(f"paid {amount}")
    return f"paid {amount}"


@tool(idempotent=True)
def pay_twice(amount: int) -> str:
    """Pay, with a promise that is not kept."""
    take(f"paid {amount}")
    return f"paid {amount}"


@tool(idempotent=True)
def pay_slowly(amount: int) -> str:
    """Pay, and then take time to answer."""
    take(f"paid {amount}")
    threading.Event().wait(1.5)
    return f"paid {amount}"


@tool(idempotent=True)
def pay_once(amount: int, context: ToolContext) -> str:
    """Pay, and refuse a key that was seen."""
    if any(line.startswith(context.key) for line in takings()):
        raise ValueError("this key was used")
    take(f"{context.key} {amount}")
    return f"paid {amount}"


@tool(idempotent=True)
async def pay_by_key(amount: int, context: ToolContext) -> str:
    """Pay, and return the first result for a key that was seen."""
    if not any(line.startswith(context.key) for line in takings()):
        take(f"{context.key} {amount}")
    return f"paid {amount}"


def in_till(key: str) -> str:
    return "happened" if any(line.startswith(key) for line in takings()) else "did_not_happen"


@tool(reconcile=in_till)
def pay_and_ask(amount: int, context: ToolContext) -> str:
    """Pay, and say later whether it happened."""
    take(f"{context.key} {amount}")
    return f"paid {amount}"


def always(key: str) -> str:
    return "happened"


@tool(reconcile=always)
def pay_and_guess(amount: int, context: ToolContext) -> str:
    """Pay, and say later that it happened, whatever happened."""
    take(f"{context.key} {amount}")
    return f"paid {amount}"


@tool(sensitive=True, idempotent=True)
def refund(context: ToolContext) -> str:
    """Pay it back, if a person allows it."""
    if not any(line.startswith(context.key) for line in takings()):
        take(f"{context.key} back")
    return "paid back"


SCRIPT = """
[[reply]]
calls = [
    {{ name = "look", arguments = {{ item = "tea" }} }},
    {{ name = "look", arguments = {{ item = "milk" }} }},
]
[[reply]]
calls = [{{ name = "{name}", arguments = {{ amount = 3 }} }}]
[[reply]]
text = "Bought."
"""


def shopper(paying, **fields):
    """Return an agent that looks and then pays, and its script."""
    agent = Agent(name="shopper", tools=[look, paying], **fields)
    return agent, "Buy tea", SCRIPT.format(name=paying.name)
