"""The tools with a name of their own: built in, offered by packages, or to start a child."""

import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final, NamedTuple

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import AGENT_SCHEME, CALL_TOOL, FIND_TOOLS, SEARCH_SCHEME, ToolSpec
from cueline.events.start import ANY_AGENT, ASK_CHILD, CHILD_RESULT, DELEGATE, MODES
from cueline.tools.ask_user import ask_user
from cueline.tools.changes import apply_patch
from cueline.tools.files import delete_file, edit_file, read_file, write_file
from cueline.tools.http_request import http_get, http_request
from cueline.tools.search import list_files, search_files
from cueline.tools.shell import run_command
from cueline.tools.todo import todo
from cueline.tools.tool import Tool

GROUP: Final = "cueline.tools"


def builtin_tools() -> dict[str, Tool]:
    """Return the built-in tools by their names in an agent's file."""
    tools = (
        *(read_file, write_file, edit_file, apply_patch, delete_file),
        *(list_files, search_files, run_command, ask_user, http_get, http_request, todo),
    )
    return {tool.name: tool for tool in tools}


@cache
def _offered() -> dict[str, str]:
    """Return the targets of the tools that installed packages offer; slow, so called at need."""
    return {entry.name: entry.value for entry in entry_points(group=GROUP)}


def named_tool(name: str, agent: str) -> Tool | str:
    """Return the built-in tool *name*, or the target of the tool that a package offers as *name*.

    Raises:
        ConfigError: the file of *agent* names a tool that does not exist.
    """
    shipped = builtin_tools()
    if name in shipped:
        return shipped[name]
    if name not in _offered():
        known = known_instead(name, sorted({*shipped, *_offered()}), "there are")
        raise ConfigError(agent, f"key 'tools': {name!r} is unknown{known}, others are module:name")
    return _offered()[name]


SYNC_SECONDS: Final = 600.0
"""The default time that a call waits for its child."""
_GOAL: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "description": "What the agent is to do. It sees nothing of this conversation.",
}
_MODE: Final[dict[str, Any]] = {
    "enum": list(MODES),
    "default": "sync",
    "description": "sync waits for the result. The others go on at once: of async_callback, a "
    f"message has the result later; of async_poll, ask for it with {CHILD_RESULT}.",
}
_SESSION: Final[dict[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "description": "The session that the call in the mode async_poll returned.",
}
_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "description": "What it is started with, if it takes parameters.",
}


class AgentCard(NamedTuple):
    """The description of an agent for a model that can start it."""

    name: str
    description: str
    instructions: str
    """The agent's instructions, which are not shown, but whose change changes the tool's digest."""
    parameters_schema: dict[str, Any] | None = None
    """The schema of the parameters of its sessions; None if they start with a goal."""


def agent_tool(agent: AgentCard) -> ToolSpec:
    """Return the tool that starts a child of *agent*."""
    what = agent.description or f"The agent {agent.name}."
    return _tool(
        agent.name.replace(".", "_"),
        f"{what} Starts it on a goal, and returns what it says last.",
        {"goal": _GOAL},
        f"{AGENT_SCHEME}{agent.name}",
        [agent],
        schema=agent.parameters_schema,
    )


def blueprint_tool(blueprint: str) -> ToolSpec:
    """Return the tool that starts a run of *blueprint* as a child."""
    return _tool(
        blueprint.replace(".", "_"),
        f"Starts a run of {blueprint} on a goal, and returns what it says last.",
        {"goal": _GOAL, "parameters": _PARAMETERS, "mode": _MODE},
        f"{AGENT_SCHEME}{blueprint}",
        (),
    )


def delegate_tool(agents: Sequence[AgentCard]) -> ToolSpec:
    """Return the tool that starts a child of one of *agents*."""
    lines = [f"- {each.name}: {each.description or 'no description'}" for each in agents]
    return _tool(
        DELEGATE,
        "Start another agent on a goal, and return what it says last. The agents are:\n"
        + "\n".join(lines),
        {
            "agent": {"type": "string", "enum": [each.name for each in agents]},
            "goal": _GOAL,
            "mode": _MODE,
        },
        ANY_AGENT,
        agents,
    )


def child_result_tool() -> ToolSpec:
    """Return the tool that polls the result of a child of the mode `async_poll`."""
    asked = _tool(
        CHILD_RESULT,
        "Get the status of an agent that was started in the mode async_poll: running, paused or, "
        "with its result, completed, failed or stopped. It returns at once. With `stop` the agent "
        "is ended, also one of the mode async_callback.",
        {"session": _SESSION, "stop": {"type": "boolean"}},
        ASK_CHILD,
        (),
    )
    return asked.model_copy(update={"declared": "read_only"})


def search_tools() -> list[ToolSpec]:
    """Return the tools by which a model finds and calls the tools that it is not shown."""
    find = _tool(
        FIND_TOOLS,
        "Find tools by words for what you want to do. It returns names, descriptions and schemas.",
        {"query": {"type": "string", "minLength": 1}},
        f"{SEARCH_SCHEME}{FIND_TOOLS}",
        (),
    )
    call = _tool(
        CALL_TOOL,
        f"Call a tool that {FIND_TOOLS} has found, with arguments that fit its schema.",
        {"name": {"type": "string"}, "arguments": {"type": "object"}},
        f"{SEARCH_SCHEME}{CALL_TOOL}",
        (),
    )
    return [find.model_copy(update={"declared": "read_only"}), call]


def _tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    target: str,
    agents: Sequence[AgentCard],
    *,
    schema: dict[str, Any] | None = None,
) -> ToolSpec:
    parameters: dict[str, Any] = schema or {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in ("mode", "parameters", "stop")],
        "additionalProperties": False,
    }
    promise = [name, parameters, target, agents]
    return ToolSpec(
        name=name,
        description=description,
        parameters=parameters,
        target=target,
        timeout_seconds=SYNC_SECONDS,
        digest=hashlib.sha256(json.dumps(promise).encode()).hexdigest(),
    )
