"""The built-in tool by which an agent keeps its own list of what is to do."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cueline.tools.tool import tool

_MARKS = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]"}


class TodoItem(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(min_length=1, max_length=500)]
    status: Literal["pending", "in_progress", "done"] = "pending"


@tool(read_only=True)
async def todo(items: Annotated[list[TodoItem], Field(max_length=100)]) -> str:
    """Keep a list of what is to do in a task of several steps, and show it to the person.

    Give the whole list each time: it replaces the former one. Have one item in progress, and
    mark an item as done as soon as it is.
    """
    done = sum(item.status == "done" for item in items)
    lines = [f"{_MARKS[item.status]} {' '.join(item.text.split())}" for item in items]
    return "\n".join([*lines, f"{done} of {len(items)} done"])
