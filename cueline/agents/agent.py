"""The agent as a Python object; `agent_file` reads an agent from a TOML file."""

import json
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
)

from cueline.actors.presence import machine_name
from cueline.agents.agent_tool import (
    ToolSettings,
    check_sandboxed,
    check_tools,
    recorded,
    without_scheme,
)
from cueline.agents.mcp_servers import checked_servers, servers_in, tools_of
from cueline.config.config_source import SourcedValue
from cueline.config.environment import HERE, user_name
from cueline.config.problem import NAME
from cueline.deciders.policy_fault import faults
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import (
    AGENT_SCHEME,
    COMPACT_AT,
    MCP_SCHEME,
    AgentSpec,
    ContextWindow,
    Fallback,
    Limits,
    Policy,
    Price,
    ToolSpec,
    Workspace,
)
from cueline.events.agent_parts import (
    DEFAULT_ISOLATION,
    NO_DEMANDS,
    BreakerPolicy,
    Demands,
    Isolation,
    McpServer,
    RetryPolicy,
    variables_in,
)
from cueline.events.fact import Number, Parameters, Whole, shared_fields
from cueline.events.sandbox import SandboxSpec
from cueline.events.start import BLUEPRINT_SCHEME, CHILD_RESULT, DELEGATE
from cueline.providers.defaults import completed
from cueline.providers.registry import DEFAULT
from cueline.tools.arguments import output_schema
from cueline.tools.catalogue import (
    AgentCard,
    agent_tool,
    blueprint_tool,
    child_result_tool,
    delegate_tool,
    named_tool,
    search_tools,
)
from cueline.tools.custom import CustomTool
from cueline.tools.declaration import checked_name
from cueline.tools.http_access import HttpAccess
from cueline.tools.skills import Skill, introduction, read_skill, skills_in
from cueline.tools.target import name_in_source
from cueline.tools.tool import Tool, load

_OUTPUT = """Your last reply is JSON that fits this JSON schema, without any other text:
{schema}"""


def _made_tool(given: object) -> object:
    """Return *given*; raise if it is neither a tool or agent, nor the name of one."""
    if isinstance(given, str):
        return without_scheme(given)
    if isinstance(given, Tool | Agent):
        return given
    why = "it is neither a tool nor the name of one"
    if callable(given):
        name = getattr(given, "__name__", repr(given))
        why = f"{name} is a function, not a tool: decorate it with `@cueline.tool`"
    raise ValueError(why)


class Agent(BaseModel):
    """An agent: a model, instructions, tools, and limits.

    The default `provider` is the first provider with a key; the default `model` is the provider's
    usual model. `tools` are `Tool`s made by `@tool`, names of built-in tools or of tools that
    packages offer, or `module:name`; `custom_tools` are commands and HTTP requests by name. An
    agent or `agent:PATH` is a tool that starts a child session of this agent. With `agents`, or
    the agents' files, the model gets the tool `delegate`, and the `description` of each agent.
    `mcp` names MCP servers, all of whose tools the agent gets as `server__tool`; `mcp_config` is
    the path of a file with further servers, like `.mcp.json`. `http` says what the tools
    `http_get` and `http_request` may reach. `skills` are folders with skills (`SKILL.md`), which
    the model reads by the tool `read_skill`.
    `parameters_schema` is the JSON schema of the parameters of the agent's sessions.
    `isolation` says what the agent's commands can reach: an `Isolation`, or "none".
    `sandbox` gives each session a sandbox, in which its commands and file tools run: a
    `SandboxSpec`, or the name of a back-end.
    At most `max_running` runs of a blueprint work at a time; other runs wait.
    `workspace` is the folder of the agent's files. `secrets` names environment variables whose
    values are never recorded (I11); `environment` names variables that tools get although they
    look like credentials. Each field is a key of the agent file with the same meaning. An
    invalid value raises pydantic's `ValidationError`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    RULE_SUBJECT: ClassVar[str] = "tool of the agent"
    """The word for the agent's tools in errors about the policy."""

    name: str = Field(pattern=NAME)
    provider: str | None = None
    model: str | None = None
    parameters: Parameters = {}
    instructions: str = ""
    description: str = ""
    tools: "Sequence[Annotated[Tool | Agent | str, BeforeValidator(_made_tool)]]" = ()
    custom_tools: dict[Annotated[str, AfterValidator(checked_name)], CustomTool] = {}
    agents: "Sequence[Agent | str]" = ()
    mcp: Annotated[dict[str, McpServer], AfterValidator(checked_servers)] = {}
    mcp_config: Path | None = None
    http: HttpAccess = HttpAccess()
    skills: tuple[Path, ...] = ()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    tool_retry: RetryPolicy | None = None
    tool_settings: dict[str, ToolSettings] = {}
    fallback: tuple[Fallback, ...] = ()
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    workspace: Path | None = None
    secrets: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    base_url: str | None = None
    key_variable: str | None = None
    headers: dict[str, str] = {}
    context_window: ContextWindow = Field(default=None, gt=0)
    compact_at: Number = Field(default=COMPACT_AT, ge=0, le=1)
    demands: Demands = NO_DEMANDS
    isolation: Isolation = DEFAULT_ISOLATION
    sandbox: SandboxSpec | None = None
    output: Annotated[dict[str, JsonValue] | None, BeforeValidator(output_schema)] = None
    parameters_schema: Annotated[dict[str, JsonValue] | None, BeforeValidator(output_schema)] = None
    max_running: Whole | None = Field(default=None, ge=1)

    @staticmethod
    def from_file(path: str | os.PathLike[str], *, allow_base_urls: Sequence[str] = ()) -> "Agent":
        """Read the agent file at *path*; paths in the file are relative to the file.

        Keys are sent only to the provider's vendor, this machine, and *allow_base_urls*.

        Raises:
            ConfigError: the file is missing or wrong; the message names the key.
        """
        # `agent_file` imports this module.
        from cueline.agents.agent_file import read_agent  # noqa: PLC0415

        allowed = {"allow_base_urls": SourcedValue(tuple(allow_base_urls), "from_file")}
        read = read_agent(Path(path), under=(allowed,))
        read.check_addresses(Path(path))
        return read.agent

    def spec(self) -> AgentSpec:
        """Return the recorded form of the agent, with every value that sessions depend on.

        Raises:
            ConfigError: a tool is unknown, or cannot be recorded; two tools have one name; or the
                policy contradicts itself.
            ToolImportError: a tool cannot be imported where it will run.
        """
        family = _family_of(self, {})
        return self.own_spec().model_copy(
            update={"agents": {name: each.own_spec() for name, each in family.items()}}
        )

    def own_spec(self) -> AgentSpec:
        """Return the recorded form of the agent, without the agents that it can start."""
        specs = self.tool_specs()
        for key, reason in faults(self.policy, [tool.name for tool in specs], self.RULE_SUBJECT):
            raise ConfigError(self.name, f"key 'policy.{key}': {reason}")
        provider, model = self.usual_model()
        folder = self.workspace and str(self.workspace.resolve())
        place = folder and Workspace(machine=machine_name(), path=folder)
        other = {
            "provider": provider,
            "model": model,
            "tools": specs,
            "policy": self.whole_policy,
            "workspace": place,
            "sandbox": self.sandbox and self.sandbox.in_folder(folder or ""),
            "mcp": self.mcp_servers(),
            "agents": {},
        }
        return AgentSpec(**shared_fields(self, AgentSpec) | other | self._form())

    def usual_model(self) -> tuple[str, str]:
        """Return the agent's provider and model, or the defaults for an agent without them.

        The agent's address or key without a provider belongs to the default provider.

        Raises:
            ConfigError: the agent names no model, and its provider has no default model.
        """
        provider = self.provider
        if provider is None and not self.names_no_model:
            provider = DEFAULT
        try:
            return completed(provider, self.model, HERE, user_name())
        except ConfigError as error:
            if error.subject != "model":
                raise
            raise ConfigError(self.name, f"key 'model': {error.reason}") from error

    @property
    def names_no_model(self) -> bool:
        """Whether the agent names no provider, model, address, key, header and parameter."""
        named = (self.provider, self.model, self.base_url, self.key_variable, self.headers)
        return not (any(named) or self.parameters)

    def _form(self) -> dict[str, Any]:
        """Return the instructions, with those for the skills and for the declared output."""
        told = self.instructions
        if self.skills:
            told = f"{told}\n\n{introduction(self._skills)}".lstrip()
        if self.output is not None:
            schema = json.dumps(self.output, ensure_ascii=False)
            told = f"{told}\n\n{_OUTPUT.format(schema=schema)}".lstrip()
        return {"instructions": told, "output": self.output}

    def children(self) -> "Iterator[Agent]":
        """Yield the agents that this agent can start."""
        yield from filter(None, map(agent_of_tool, self.tools))
        yield from map(_loaded, self.agents)

    def tool_specs(self) -> tuple[ToolSpec, ...]:
        """Return the recorded form of the agent's tools.

        Raises:
            ConfigError: a tool is unknown, or cannot be recorded; or two tools have one name.
            ToolImportError: a tool cannot be imported where it will run.
        """
        tools = [self.as_recorded(tool) for tool in self.tools]
        if self.agents:
            tools.append(delegate_tool([_card_of(self._delegate(each)) for each in self.agents]))
        tools += [child_result_tool()] if self._chooses_mode else []
        tools += [self.as_recorded(read_skill)] if self.skills else []
        tools += map(self._custom_tool, self.custom_tools)
        tools += self._mcp_tools.values()
        if any(tool.searched for tool in tools):
            tools += search_tools()
        check_tools(self.name, tools, self.tool_settings)
        as_set = tuple(map(self._as_set, tools))
        if self.sandbox is not None:
            check_sandboxed(self.name, as_set)
        return as_set

    def mcp_servers(self) -> dict[str, McpServer]:
        """Return the MCP servers of the agent and of its `mcp_config`, by name.

        Raises:
            ConfigError: the file is missing or wrong, or a server is in both.
        """
        if self.mcp_config is None:
            return self.mcp
        found = servers_in(self.mcp_config)
        if twice := sorted(found.keys() & self.mcp.keys()):
            raise ConfigError(self.name, f"key 'mcp.{twice[0]}': {self.mcp_config} has it, too")
        return found | self.mcp

    @property
    def _chooses_mode(self) -> bool:
        """Whether the model can choose when a call that starts a child returns."""
        runs = [isinstance(each, str) and each.startswith(BLUEPRINT_SCHEME) for each in self.tools]
        return bool(self.agents) or any(runs)

    def tool_names(self) -> dict[str, str | None]:
        """Return the name of each tool without a run of the tool's code; None for an unknown name.

        Raises:
            ConfigError: a tool is unknown.
        """
        names = {
            tool: _name_of(tool, self.name)
            for tool in self.tools
            if isinstance(tool, str) and not tool.startswith(AGENT_SCHEME)
        }
        children = [
            agent_tool(_card_of(child)).name
            for child in filter(None, map(agent_of_tool, self.tools))
        ]
        own = [DELEGATE] * bool(self.agents) + [CHILD_RESULT] * self._chooses_mode
        own += [read_skill.name] * bool(self.skills) + [*self.custom_tools]
        names |= {f"mcp.{server}": None for server in self.mcp_servers()}
        return names | {name: name for name in (*children, *own)}

    @property
    def whole_policy(self) -> Policy:
        """Return the agent's policy, with a default rule about costs if cost is limited (C14)."""
        if self.limits.max_cost is None or "approval" in self.policy.model_fields_set:
            return self.policy
        return self.policy.model_copy(update={"approval": (*self.policy.approval, "cost")})

    def as_recorded(self, tool: "Tool | Agent | str") -> ToolSpec:
        """Return the recorded form of one of the agent's tools, without the agent's settings.

        Raises:
            ConfigError: the tool is unknown, or cannot be recorded.
            ToolImportError: the tool cannot be imported where it will run.
        """
        if (agent := agent_of_tool(tool)) is not None:
            return agent_tool(_card_of(agent))
        if isinstance(tool, str):
            if tool.startswith(BLUEPRINT_SCHEME):
                return blueprint_tool(tool.removeprefix(BLUEPRINT_SCHEME))
            if tool.startswith(MCP_SCHEME):
                return self._mcp_tool(tool)
            if tool in self.custom_tools:
                return self._custom_tool(tool)
            found = tool if ":" in tool else named_tool(tool, self.name)
            tool = load(found) if isinstance(found, str) else found
        assert isinstance(tool, Tool), "a tool is a tool, an agent or a name"
        return recorded(tool, self.http, self._skills)

    def _custom_tool(self, name: str) -> ToolSpec:
        tool = self.custom_tools[name]
        if unknown := sorted({*variables_in(tool.headers)} - {*self.secrets, *self.environment}):
            why = f"`secrets` does not name {unknown[0]}, so its value could be recorded"
            raise ConfigError(self.name, f"key 'custom_tools.{name}.headers': {why}")
        return tool.spec(name, self.http, in_workspace=self.workspace is not None)

    @cached_property
    def _skills(self) -> tuple[Skill, ...]:
        """The skills of the agent, read once, so that instructions and tool agree."""
        return skills_in(self.skills)

    @cached_property
    def _mcp_tools(self) -> dict[str, ToolSpec]:
        """The tools of the agent's MCP servers, by target."""
        servers = self.mcp_servers()
        tools = tools_of(servers, self.workspace, self.isolation) if servers else []
        return {tool.target: tool for tool in tools}

    def _mcp_tool(self, target: str) -> ToolSpec:
        if target not in self._mcp_tools:
            known = known_instead(target, sorted(self._mcp_tools), "there are")
            raise ConfigError(self.name, f"there is no tool {target!r}{known}")
        return self._mcp_tools[target]

    def _delegate(self, given: "Agent | str") -> "Agent":
        agent = _loaded(given)
        if agent.parameters_schema is not None:
            why = f"{agent.name} takes parameters, not a goal: name it in `tools` instead"
            raise ConfigError(self.name, f"key 'agents': {why}")
        return agent

    def _as_set(self, tool: ToolSpec) -> ToolSpec:
        """Return *tool* with the agent's settings for this tool."""
        return self.tool_settings.get(tool.name, ToolSettings()).applied_to(tool)


ToolOrAgent = Annotated[Tool | Agent | str, BeforeValidator(_made_tool)]


def agent_of_tool(tool: Tool | Agent | str) -> Agent | None:
    """Return the agent that a call of *tool* starts; None if *tool* starts no agent."""
    if isinstance(tool, str):
        path = tool.removeprefix(AGENT_SCHEME)
        return None if path == tool else _loaded(path)
    return tool if isinstance(tool, Agent) else None


def _name_of(tool: str, agent: str) -> str | None:
    if tool.startswith(BLUEPRINT_SCHEME):
        return blueprint_tool(tool.removeprefix(BLUEPRINT_SCHEME)).name
    found = tool if ":" in tool else named_tool(tool, agent)
    return name_in_source(found) if isinstance(found, str) else found.name


def _loaded(agent: Agent | str) -> Agent:
    return Agent.from_file(agent) if isinstance(agent, str) else agent


def _card_of(agent: Agent) -> AgentCard:
    return AgentCard(agent.name, agent.description, agent.instructions, agent.parameters_schema)


def _family_of(agent: Agent, found: dict[str, Agent]) -> dict[str, Agent]:
    """Return *found* with the agents of all descendants of *agent*, by name.

    Raises:
        ConfigError: a file is wrong, or two agents have one name.
    """
    for child in agent.children():
        known = found.setdefault(child.name, child)
        if known is child:
            _family_of(child, found)
        elif known != child:
            raise ConfigError(agent.name, f"two agents are called {child.name!r}: rename one")
    return found
