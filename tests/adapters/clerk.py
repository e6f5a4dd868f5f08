"""A pydantic-ai agent that stops at a point of its run, where its process is killed.

As a script it starts a session of the agent.
"""

import asyncio
from pathlib import Path
from threading import Event

from pydantic_ai import Agent, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import cueline
from cueline.adapters.pydantic_ai import from_pydantic_ai

STOP, STOPPED, RAN = Path("stop.txt"), Path("stopped.txt"), Path("ran.txt")


def reach(point):
    """Stay here for good, if this is the point to stop at: once."""
    if STOP.exists() and STOP.read_text() == point:
        STOP.rename(STOPPED)
        Event().wait()


def note(word):
    with RAN.open("a") as file:
        file.write(f"{word} ")


async def answer(messages, info):
    turn = sum(isinstance(each, ModelResponse) for each in messages)
    reach(f"model {turn}")
    calls = [ToolCallPart("price", {}, "c1"), ToolCallPart("pay", {}, "c2")]
    return ModelResponse(parts=[calls[turn] if turn < len(calls) else TextPart("Sold.")])


agent = Agent(FunctionModel(answer, model_name="clerk"))


@agent.tool_plain
async def price() -> int:
    """Look up the price."""
    note("price")
    reach("in price")
    return 3


@agent.tool_plain
def pay() -> str:
    """Pay, in a process of its own."""
    reach("before pay")
    note("pay")
    reach("after pay")
    return "paid"


async def main():
    clerk = from_pydantic_ai(
        f"{__file__}:agent",
        name="clerk",
        declared={"price": "read_only"},
        policy=cueline.Policy(in_doubt="tell"),
    )
    async with cueline.open_runtime("log.db", on="inline") as runtime:
        session = await runtime.start(clerk, "Sell", id="sale")
        await session.result()


if __name__ == "__main__":
    asyncio.run(main())
