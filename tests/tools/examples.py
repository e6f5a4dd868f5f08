"""Tools for the tests, found by `path.py:name`."""

import resource
from typing import Annotated

from pydantic import Field

from cueline.tools.tool import ToolContext, tool
from cueline.tools.worker import LIMITS

LOADED = []
LOADED.append(1)


@tool
def open_no_more_files() -> None:
    """Let this process open none beside those that it has, and hide it."""
    resource.getrlimit = {limit: resource.getrlimit(limit) for limit in LIMITS}.get
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


@tool(read_only=True)
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@tool
def order_tea(
    kind: Annotated[str, Field(description="Black, green or white.")],
    cups: int = 1,
    *,
    context: ToolContext,
) -> str:
    """Order tea.

    It is brought to the desk.

    Args:
        kind: not told, because the annotation says it.
        cups: how many
            of them.
        context: filled by the runner.

    Returns:
        Nothing that the model need know.
    """
    return f"{cups} of {kind}, {context.key}"


@tool(read_only=True)
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"


def by_the_page(pages: int, **_: object) -> str:
    """Say what it costs to print."""
    return f"{pages}.50"


@tool(cost_usd=by_the_page)
def printed(pages: int, copies: int = 1) -> str:
    """Print."""
    return f"{pages} pages, {copies} times"


def plain() -> None:
    """Is not a tool."""
