"""The tool by which an agent asks a person; the answer may come days later, from any shell."""

from typing import Annotated, Final

from pydantic import Field, JsonValue

from cueline.actors.tool_port import ToolOrder, ToolOutput, ToolQuestion
from cueline.events.fact import text_of
from cueline.events.input_request import InputRequest
from cueline.tools.tool import tool

ANSWER: Final = "answer"
"""The key of the only request, and the name of its only value."""


@tool(read_only=True)
async def ask_user(
    question: Annotated[str, Field(min_length=1)],
    choices: Annotated[list[str], Field(max_length=20)] = [],  # noqa: B006 - never changed
) -> str:
    """Ask the person you work for, and return the answer.

    Ask only what you cannot find out, and one thing at a time. The answer may take long.

    Args:
        question: what you want to know, with what the person needs to decide it.
        choices: the answers to choose from, if there are only these.
    """
    raise AssertionError(f"the runner asks {question!r} of {choices}")


def asked(order: ToolOrder) -> ToolOutput | ToolQuestion:
    """Return the question of a call of `ask_user`, or the answer that a person gave."""
    if order.given is not None:
        given = order.given.answers.get(ANSWER, "")
        said = given.get(ANSWER, "") if isinstance(given, dict) else given
        return ToolOutput(text_of(said).encode(), 0.0)
    values: dict[str, JsonValue] = {"type": "string", "minLength": 1}
    if choices := order.arguments.get("choices"):
        values = {"type": "string", "enum": choices}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {ANSWER: values},
        "required": [ANSWER],
    }
    message = order.arguments["question"]
    return ToolQuestion((InputRequest(key=ANSWER, message=message, parameters=schema),))
