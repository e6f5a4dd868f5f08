"""A tool for cueline that rolls dice."""

from random import Random

from cueline import ToolContext, tool


@tool(idempotent=True)
def roll_dice(count: int, context: ToolContext) -> list[int]:
    """Roll dice; the same call always shows the same numbers."""
    dice = Random(context.key)
    return [dice.randint(1, 6) for _ in range(count)]
