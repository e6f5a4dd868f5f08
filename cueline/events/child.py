"""The call of a parent session that a child session was started for."""

from functools import partial
from operator import eq, not_
from typing import Final, Literal, TypeGuard, get_args

from pydantic import Field, JsonValue

from cueline.events.agent import AGENT_SCHEME, ToolSpec
from cueline.events.part import Part

DELEGATE: Final = "delegate"
"""The tool with which a model chooses the agent of a child."""
CHILD_RESULT: Final = "child_result"
"""The tool with which a model asks how a child of the mode `async_poll` ended."""
ANY_AGENT: Final = f"{AGENT_SCHEME}*"
"""The target of `delegate`: the call names the agent."""

ASK_CHILD: Final = f"{AGENT_SCHEME}?"
"""The target of `child_result`: the call asks how a child ended."""

BLUEPRINT_SCHEME: Final = "blueprint:"
"""Of a tool as an agent names it: a call starts a run of that blueprint."""

Mode = Literal["sync", "async_poll", "async_callback"]
"""When the call returns: with the child's end, or at once.

Then the model asks for the end, or gets it as a message.
"""
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


class ChildCall(Part):
    """The call of a parent that a session was started for."""

    effect: str
    attempt: int = Field(default=1, exclude_if=partial(eq, 1))
    mode: Mode = "sync"
    parameters: dict[str, JsonValue] = Field(default={}, exclude_if=not_)
    """The arguments of the call."""


def starts_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* starts a child session; in a rerun its result is recorded."""
    return _is_of_children(tool) and tool.target != ASK_CHILD


def asks_child(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
    """Whether a call of *tool* asks how a child ended."""
    return _is_of_children(tool) and tool.target == ASK_CHILD


def _is_of_children(tool: ToolSpec | None) -> TypeGuard[ToolSpec]:
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
    asked = parameters.get("mode")
    return next((mode for mode in MODES if mode == asked), "sync")


def agent_named(tool: ToolSpec, parameters: dict[str, JsonValue]) -> str:
    """Return the name of the agent that a call of *tool* starts."""
    if tool.target == ANY_AGENT:
        return str(parameters.get("agent", ""))
    return tool.target.removeprefix(AGENT_SCHEME)
