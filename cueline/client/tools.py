"""What tools an agent has, whether they can be used here, and one call of one of them by hand."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from pydantic import JsonValue

from cueline.agents.agent import Agent
from cueline.agents.workflow import Step, Workflow
from cueline.client.inputs import typed
from cueline.config.environment import HERE
from cueline.deciders.policy import may_ask
from cueline.errors import ConfigError, CuelineError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import AGENT_SCHEME, COMMAND_SCHEME, AgentSpec, Declared, ToolSpec
from cueline.events.agent_parts import Isolation, McpServer
from cueline.isolation.ladder import Rung, overlays, rung
from cueline.providers.mcp_logins import McpLogins
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.shell import run_command


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool of an agent."""

    name: str
    """The name for the model."""
    target: str
    """Where its code is: see `ToolSpec.target`."""
    declared: Declared
    """Whether a call may run twice."""
    asks: bool
    """Whether a call may need an approval under the agent's policy."""
    runs: str
    """The place of its calls, and what isolates its commands on this machine."""
    gap: str
    """What commands can do although they are isolated, or why they are refused; mostly empty."""
    description: str
    parameters: dict[str, JsonValue]
    """The JSON schema of the arguments."""
    digest: str


_COMMANDS: Final = run_command.spec().target


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """Whether a part of an agent's tools can be used here."""

    name: str
    """A tool of Python, or an MCP server."""
    tools: int
    problem: str
    """Why it cannot be used; empty if it can."""
    seconds: float


@dataclass(frozen=True, slots=True)
class ToolChange:
    """A tool of a session that its MCP server describes in another way now."""

    name: str
    difference: str
    """The lines that the model sees, as a unified diff."""


def tool_rows(agent: Agent) -> tuple[ToolRow, ...]:
    """Return the tools of *agent*, as a session that starts now would get them.

    Raises:
        ConfigError: a tool is unknown, or an MCP server cannot be used.
        ToolImportError: a tool cannot be imported here.
    """
    return tuple(_row(tool, agent) for tool in agent.tool_specs())


def _row(tool: ToolSpec, agent: Agent) -> ToolRow:
    runs, gap = _place(tool), ""
    if agent.sandbox is not None and tool.needs_workspace:
        runs = f"the session's sandbox ({agent.sandbox.backend})"
    elif tool.target.startswith((_COMMANDS, COMMAND_SCHEME)):
        found = overlays() if tool.changes else None
        runs, gap = _commands(agent.isolation, "a worker process", found)
        runs += ", its changes held" if tool.changes else ""
    elif tool.server and not (server := agent.mcp_servers()[tool.server]).url:
        runs, gap = _commands(server.isolation or agent.isolation, runs)
    return ToolRow(
        tool.name,
        tool.target,
        tool.repeatability,
        may_ask(agent.whole_policy, tool),
        runs,
        gap,
        tool.description,
        tool.parameters,
        tool.digest,
    )


def _commands(isolation: Isolation, where: str, found: Rung | None = None) -> tuple[str, str]:
    """Return where commands run, and what they can do although they are isolated.

    They are isolated by *found*; None: by the best that there is.
    """
    if isolation.kind == "none":
        return f"{where}, not isolated", ""
    found = found or rung(kind=isolation.kind)
    if not found.kind:
        return "nowhere: it cannot be isolated here", f"{found.cause}; {found.fix}"
    return f"{where}, isolated by {found.name}", found.gap


def _place(tool: ToolSpec) -> str:
    if tool.target.startswith(AGENT_SCHEME):
        return "as a child session"
    if tool.server:
        return f"MCP server {tool.server}"
    place = "the runner's event loop" if tool.in_loop else "a worker process"
    return f"{place}, with {tool.demands}" if tool.demands else place


def tool_checks(agent: Agent) -> Iterator[ToolCheck]:
    """Yield for each tool of Python and each MCP server of *agent* whether it can be used here.

    Raises:
        ConfigError: the agent itself is wrong.
    """
    alone = agent.model_copy(update={"mcp": {}, "mcp_config": None})
    for given in alone.tools:
        began = perf_counter()
        name, problem = str(getattr(given, "name", given)), ""
        try:
            spec = alone.as_recorded(given)
            if spec.runs:
                load_recorded(spec)
        except CuelineError as error:
            problem = str(error)
        yield ToolCheck(name, 1, problem, perf_counter() - began)
    for name, server in agent.mcp_servers().items():
        yield _server_check(name, server, agent)


LOGIN_SECONDS: Final = 600.0
"""The time that a person has to log in to an MCP server."""


def login_check(agent: Agent, name: str, show: Callable[[str], None]) -> ToolCheck:
    """Log in to the MCP server *name* of *agent* by OAuth, anew, and say if it can be used.

    Args:
        agent: the agent.
        name: the server's name in the agent's file.
        show: shows a person the address at which the login begins.

    Raises:
        ConfigError: the agent has no such server, or the server has no `oauth`.
    """
    servers = {each: found for each, found in agent.mcp_servers().items() if found.oauth}
    if name not in servers:
        known = known_instead(name, sorted(servers), "there are")
        raise ConfigError(agent.name, f"there is no MCP server {name!r} with `oauth`{known}")
    patient = servers[name].model_copy(update={"start_seconds": LOGIN_SECONDS})
    return _server_check(name, patient, agent, show)


def _server_check(
    name: str, server: McpServer, agent: Agent, show: Callable[[str], None] | None = None
) -> ToolCheck:
    from cueline.tools.mcp.listing import listed  # noqa: PLC0415 - the SDK is an extra

    began = perf_counter()
    found = listed(
        {name: server},
        agent.workspace,
        isolation=agent.isolation,
        logins=McpLogins(HERE),
        show=show,
    )[name]
    count, problem = (len(found), "") if isinstance(found, list) else (0, str(found))
    return ToolCheck(f"mcp.{name}", count, problem, perf_counter() - began)


def tool_changes(agent: AgentSpec) -> tuple[ToolChange, ...]:
    """Return the tools of a recorded *agent* that its MCP servers describe in another way now.

    Raises:
        ConfigError: a server cannot be used.
        ToolImportError: a server has a tool no more.
    """
    if not agent.mcp:
        return ()
    from cueline.tools.mcp.definition import difference  # noqa: PLC0415 - as above
    from cueline.tools.mcp.listing import changed_of  # noqa: PLC0415 - as above

    before = {tool.name: tool for tool in agent.tools}
    now = changed_of(agent, McpLogins(HERE))
    return tuple(ToolChange(each.name, difference(before[each.name], each)) for each in now)


def agent_of_one_call(agent: Agent, name: str, arguments: Mapping[str, str]) -> Workflow:
    """Return an agent that makes one call of a tool of *agent*, under its policy and limits.

    Args:
        agent: the agent that has the tool.
        name: the name of the tool for the model.
        arguments: the arguments; each is read as JSON, unless the tool takes a text there.

    Raises:
        ConfigError: the agent has no such tool, or the arguments do not fit it.
        ToolImportError: the tool cannot be imported here.
    """
    specs = {tool.name: tool for tool in agent.tool_specs()}
    if name not in specs:
        raise ConfigError(
            name, f"{agent.name} has no such tool{known_instead(name, sorted(specs))}"
        )
    spec = specs[name]
    own = next((each for each in agent.tools if agent.as_recorded(each).name == name), None)
    uses = own or (name if name in agent.custom_tools else spec.target)
    if own is None and spec.target.startswith(AGENT_SCHEME):
        raise ConfigError(name, "it starts a session; start its agent with `cueline run`")
    step = Step(name=name, tool=uses, arguments=typed(arguments, spec.parameters))
    kept = {key: getattr(agent, key) for key in Workflow.model_fields if key in _KEPT}
    settings = {key: each for key, each in agent.tool_settings.items() if key == name}
    return Workflow(name=agent.name, steps=(step,), tool_settings=settings, **kept)


_KEPT = {
    *("limits", "policy", "workspace", "secrets", "environment", "demands"),
    *("isolation", "mcp", "mcp_config", "http", "skills", "tool_retry", "custom_tools"),
}
