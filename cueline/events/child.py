"""The call of a parent session that a child session was started for."""

from functools import partial
from operator import eq, not_
from typing import Final, Literal

from pydantic import Field, JsonValue

from cueline.events.agent import AGENT_SCHEME, ToolSpec
from cueline.events.part import Part

DELEGATE: Final = "delegate"
"""The tool with which a model chooses the agent of a child."""
ANY_AGENT: Final = f"{AGENT_SCHEME}*"
"""The target of `delegate`: the call names the agent."""

BLUEPRINT_SCHEME: Final = "blueprint:"
"""Of a tool as an agent names it: a call starts a run of that blueprint."""

Mode = Literal["sync", "async_callback"]
"""When the call returns: with the child's end, or at once; then the end is a message."""


class ChildCall(Part):
    """The call of a parent that a session was started for."""

    effect: str
    attempt: int = Field(default=1, exclude_if=partial(eq, 1))
    mode: Mode = "sync"
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the call."""


def starts_child(tool: ToolSpec | None) -> bool:
    """Whether a call of *tool* starts a child session; in a rerun its result is recorded."""
    return tool is not None and tool.target.startswith(AGENT_SCHEME) and tool.recording is None


def child_stream(parent: str, effect: str) -> str:
    """Return the stream of the child of that call: it has one name, so it starts once."""
    return f"{parent}.{effect}"


def parent_of(stream: str) -> str | None:
    """Return the session whose call may have started *stream*, by its name."""
    above, *numbers = stream.rsplit(".", 2)
    return above if len(numbers) == 2 and all(map(str.isdecimal, numbers)) else None  # noqa: PLR2004 - turn and index


def mode_of(parameters: dict[str, JsonValue]) -> Mode:
    """Return the mode that a call asks for."""
    return "async_callback" if parameters.get("mode") == "async_callback" else "sync"


def agent_named(tool: ToolSpec, parameters: dict[str, JsonValue]) -> str:
    """Return the name of the agent that a call of *tool* starts."""
    if tool.target == ANY_AGENT:
        return str(parameters.get("agent", ""))
    return tool.target.removeprefix(AGENT_SCHEME)
