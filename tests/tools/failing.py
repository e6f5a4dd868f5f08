"""Tools that fail, each in its own way."""

from collections.abc import Iterator

from cueline.errors import ToolFailedError
from cueline.tools.tool import tool


class CoffeeMachineError(Exception):
    """Somebody else's error."""


@tool(read_only=True)
def rate_limited(seconds: float) -> str:
    """Say when to come back."""
    raise ToolFailedError("rate_limited", "come back later", seconds)


@tool(read_only=True)
async def rate_limited_in_loop(seconds: float) -> str:
    """Say when to come back, in the runner's loop."""
    raise ToolFailedError("rate_limited", "come back later", seconds)


@tool(read_only=True, transient=(CoffeeMachineError, ConnectionError, TimeoutError))
def fetch(kind: str) -> str:
    """Fail as *kind* says."""
    raise ERRORS[kind]


@tool(read_only=True, transient=(CoffeeMachineError, ConnectionError, TimeoutError))
async def fetch_in_loop(kind: str) -> str:
    """Fail as *kind* says, in the runner's loop."""
    raise ERRORS[kind]


@tool(read_only=True, transient=Exception)
def know_better(kind: str) -> str:
    """Let everything pass, but say what it was."""
    raise ToolFailedError(kind, "come back later", 7)


@tool(read_only=True, transient=Exception)
async def know_better_in_loop(kind: str) -> str:
    """Let everything pass, but say what it was, in the runner's loop."""
    raise ToolFailedError(kind, "come back later", 7)


@tool(read_only=True, transient=(CoffeeMachineError, ConnectionError, TimeoutError))
def fetch_one_by_one(kind: str) -> Iterator[str]:
    """Fail as *kind* says, when something was there already."""
    yield "a first one"
    raise ERRORS[kind]


@tool
def claim(kind: str) -> str:
    """Claim what is not a tool's to say."""
    raise ToolFailedError(kind, "so I say", "soon")


COFFEE = CoffeeMachineError("no beans")
RESET = ConnectionResetError("by peer")
PLAIN = ValueError("network error: timeout")
ERRORS = {
    "coffee": COFFEE,
    "reset": RESET,
    "slow": TimeoutError("took too long"),
    "plain": PLAIN,
    "group": ExceptionGroup("of one", [ExceptionGroup("of one", [RESET])]),
    "resets": ExceptionGroup("of two", [RESET, COFFEE]),
    "mixed": ExceptionGroup("of two", [RESET, PLAIN]),
    "said": ExceptionGroup("of one", [ToolFailedError("rate_limited", "come back later", 7)]),
}
