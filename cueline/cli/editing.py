"""What a person may make of a call: other arguments, and what is allowed for good."""

from collections.abc import Sequence

from cueline.console.edit import edited
from cueline.deciders.policy import always
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.approval import ApprovalOpened
from cueline.events.message import Arguments
from cueline.preflight import judged_edit


async def checked_edit(
    asked: ApprovalOpened, changes: Sequence[str], agent: AgentSpec
) -> Arguments:
    """Return the arguments with *changes*, also as to what they will cost.

    Raises:
        ConfigError: they do not fit the tool, or no person can allow them.
    """
    arguments = edited(asked.arguments, changes)
    await judged_edit(agent, tool_of(agent, asked.tool), arguments)
    return arguments


def always_of(
    asked: ApprovalOpened, edit: Arguments | None, agent: AgentSpec, within: tuple[str, ...]
) -> tuple[str, ...]:
    """Return where the tool may be used for the rest of the session: *within*, else as it is now.

    Raises:
        ConfigError: the tool names no paths, so that nothing of it lies anywhere.
    """
    tool = tool_of(agent, asked.tool)
    if within and not tool.paths:
        reason = f"{tool.name} names no paths; without it, --always is for exactly these arguments"
        raise ConfigError("--within", reason)
    return within or always(tool, asked.arguments if edit is None else edit)


def tool_of(agent: AgentSpec, name: str) -> ToolSpec:
    """Return the tool of that name."""
    return next(tool for tool in agent.tools if tool.name == name)
