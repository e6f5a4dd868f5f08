"""The tools that cueline ships: the built-in tools, and the tools that start child sessions."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import AGENT_SCHEME, ToolSpec
from cueline.events.start import ANY_AGENT, ASK_CHILD, CHILD_RESULT, DELEGATE, MODES
from cueline.tools.files import delete_file, list_files, read_file, search_files, write_file
from cueline.tools.shell import run_command
from cueline.tools.tool import Tool


def builtin_tools() -> dict[str, Tool]:
    """Return the built-in tools by their names in an agent's file."""
    tools = (read_file, write_file, list_files, search_files, delete_file, run_command)
    return {tool.name: tool for tool in tools}


def shipped_tool(name: str, agent: str) -> Tool:
    """Return the tool *name* of the file of *agent*.

    Raises:
        ConfigError: there is no such tool.
    """
    shipped = builtin_tools()
    if name not in shipped:
        known = known_instead(name, sorted(shipped), "shipped are")
        raise ConfigError(agent, f"key 'tools': {name!r} is unknown{known}, others are module:name")
    return shipped[name]


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
