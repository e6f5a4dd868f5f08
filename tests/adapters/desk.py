"""A pydantic-ai agent with dependencies, a toolset, an output function and a validator.

It stops at a point of its run, where its process is killed. As a script it starts a session.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from pydantic import BaseModel
from pydantic_ai import Agent, ModelResponse, ModelRetry, RunContext, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.toolsets import FunctionToolset

import cueline
from cueline.adapters.pydantic_ai import from_pydantic_ai

STOP, STOPPED, RAN = Path("stop.txt"), Path("stopped.txt"), Path("ran.txt")


@dataclass
class Deps:
    goods: str
    least: int


class Receipt(BaseModel):
    total: int


def reach(point):
    """Stay here for good, if this is the point to stop at: once."""
    if STOP.exists() and STOP.read_text() == point:
        STOP.rename(STOPPED)
        Event().wait()


def note(word):
    with RAN.open("a") as file:
        file.write(f"{word} ")


def make_deps():
    return Deps("fruit", 2)


TURNS = [
    [ToolCallPart("price", {"item": "peer"}, "c1")],
    [ToolCallPart("price", {"item": "pear"}, "c2"), ToolCallPart("stock_count", {}, "c3")],
    [ToolCallPart("final_result", {"usd": 1}, "c4")],
    [TextPart('{"usd": 3}')],
]


async def answer(messages, info):
    turn = sum(isinstance(each, ModelResponse) for each in messages)
    reach(f"model {turn}")
    return ModelResponse(parts=TURNS[turn])


def sell(context: RunContext[Deps], usd: int) -> Receipt:
    """Sell."""
    note(f"sell {usd}")
    if usd < context.deps.least:
        raise ModelRetry(f"{usd} is too little")
    return Receipt(total=usd)


async def count(context: RunContext[Deps]) -> str:
    note("count")
    return f"100 of {context.deps.goods}"


agent = Agent(
    FunctionModel(answer, model_name="desk"),
    deps_type=Deps,
    output_type=sell,
    toolsets=[FunctionToolset([count], instructions="Count first.").prefixed("stock")],
)


@agent.instructions
async def introduce(context: RunContext[Deps]) -> str:
    return f"You sell {context.deps.goods}."


@agent.tool
async def price(context: RunContext[Deps], item: str) -> str:
    """Look up a price."""
    note(item)
    if item != "pear":
        raise ModelRetry(f"There is no {item}")
    return f"{context.deps.least} for {context.tool_name} in {context.tool_call_id}"


@agent.output_validator
def add_tax(context: RunContext[Deps], receipt: Receipt) -> Receipt:
    return Receipt(total=receipt.total + context.deps.least)


def translated():
    return from_pydantic_ai(
        f"{__file__}:agent",
        name="desk",
        declared=dict.fromkeys(("price", "stock_count", "final_result"), "read_only"),
        deps=make_deps,
    )


async def main():
    async with cueline.open_runtime("log.db", on="inline") as runtime:
        session = await runtime.start(translated(), "Sell", id="sale")
        await session.result()


if __name__ == "__main__":
    asyncio.run(main())
