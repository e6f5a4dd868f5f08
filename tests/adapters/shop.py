"""A pydantic-ai agent with a tool of each kind, whose model answers by what was said before."""

from pathlib import Path

from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage

PAID = "paid.txt"


class Receipt(BaseModel):
    total: int


async def clerk(messages, info):
    turn = sum(isinstance(each, ModelResponse) for each in messages)
    parts = [
        [
            ThinkingPart("Prices first.", id="t1", signature="s1", provider_name="function"),
            ToolCallPart("price", {"item": "pear"}, "c1", provider_details={"mark": "m"}),
            ToolCallPart("price", {"item": "fig", "copies": 2}, "c2"),
        ],
        [ToolCallPart("pay", {"usd": 9}, "c3"), ToolCallPart("price", {"item": 1}, "c4")],
        [TextPart('{"total": 9}')],
    ][turn]
    usage = RequestUsage(input_tokens=100, cache_read_tokens=40, output_tokens=7)
    return ModelResponse(parts=parts, usage=usage)


agent = Agent(
    FunctionModel(clerk, model_name="clerk"),
    system_prompt="You sell fruit.",
    instructions="Be brief.",
    output_type=Receipt,
    model_settings={"temperature": 0.5},
)


@agent.tool_plain
async def price(item: str, copies: int = 1) -> int:
    """Look up a price.

    Args:
        item: what to sell
        copies: how many of it
    """
    return 3 * copies


@agent.tool_plain(timeout=30)
def pay(usd: int) -> str:
    """Pay."""
    with Path(PAID).open("a", encoding="utf-8") as file:
        file.write(f"{usd}\n")
    return f"paid {usd}"


@agent.tool_plain(requires_approval=True)
def picture() -> BinaryContent:
    """Take a picture."""
    return BinaryContent(b"\x89PNG\r\n\x1a\n", media_type="image/png")


def results(messages):
    """Return the results of tools in *messages*, as pydantic-ai has them."""
    parts = (part for message in messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolReturnPart)]
