"""What a person may make of a call: other arguments, and what is allowed for good."""

from collections.abc import Mapping, Sequence

from cueline.console.edit import edited
from cueline.deciders.policy import NOT_ESTIMATED, always, judge
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec, ToolSpec
from cueline.events.approval import ApprovalOpened
from cueline.events.message import Arguments, Estimate


async def checked_edit(
    asked: ApprovalOpened, changes: Sequence[str], agent: AgentSpec
) -> Arguments:
    """Return the arguments with *changes*, also as to what they will cost.

    Raises:
        ConfigError: they do not fit the tool, or no person can allow them.
    """
    from cueline.tools.estimate import estimate

    arguments = edited(asked.arguments, changes)
    tool = tool_of(agent, asked.tool)
    cost = await estimate(tool, arguments) if tool.estimates else NOT_ESTIMATED
    if (problem := problem_of_edit(asked.tool, arguments, agent, cost)) is not None:
        raise ConfigError("the edit", problem)
    return arguments


def problem_of_edit(
    tool: str, arguments: Mapping[str, object], agent: AgentSpec, cost: Estimate = NOT_ESTIMATED
) -> str | None:
    """Say why a call cannot run with *arguments*; None when a person may allow it."""
    from cueline.tools.arguments import check_call

    spec = tool_of(agent, tool)
    if (problem := check_call(spec, dict(arguments))) is not None:  # type: ignore[arg-type]  # it is JSON
        return problem
    given: Arguments = dict(arguments)  # type: ignore[arg-type]  # likewise
    judged = judge(agent.policy, spec, given, estimate=cost, workspace=agent.workspace)
    if judged.answer == "deny":
        return f"a rule denies it ({judged.rule})"
    return None


def always_of(asked: ApprovalOpened, edit: Arguments | None, agent: AgentSpec) -> tuple[str, ...]:
    """Return where the tool may be used for the rest of the session: as it is now."""
    return always(tool_of(agent, asked.tool), asked.arguments if edit is None else edit)


def tool_of(agent: AgentSpec, name: str) -> ToolSpec:
    """Return the tool of that name."""
    return next(tool for tool in agent.tools if tool.name == name)
