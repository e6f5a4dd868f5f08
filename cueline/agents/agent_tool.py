"""One tool of an agent: its recorded form, and the agent's settings for it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from cueline.actors.presence import machine_name
from cueline.config.problem import problems_of
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.agent import OnTimeout, ToolSpec
from cueline.events.agent_parts import BreakerPolicy, Demands, RetryPolicy
from cueline.events.fact import Seconds
from cueline.events.start import starts_child
from cueline.tools.http_access import HttpAccess
from cueline.tools.http_request import http_get, http_request
from cueline.tools.shell import holds_changes, runs_in_sandbox
from cueline.tools.skills import Skill, read_skill
from cueline.tools.tool import Tool

_WITH_SCHEME: Final = re.compile(r"builtin:([^:]+)|python:((?!.*\.py:).+:.+)|file:(.+\.py:.+)")


class ToolSettings(BaseModel):
    """An agent's settings for a tool, which replace the tool's own settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    critical: bool | None = None
    retry: RetryPolicy | None = None
    breaker: BreakerPolicy | None = None
    demands: Demands | None = None
    timeout_seconds: Seconds | None = Field(default=None, gt=0)
    on_timeout: OnTimeout | None = None
    changes: Literal["held"] | None = None

    def applied_to(self, tool: ToolSpec) -> ToolSpec:
        """Return *tool* with these settings."""
        given = {name: getattr(self, name) for name in ToolSettings.model_fields}
        return tool.model_copy(update={k: each for k, each in given.items() if each is not None})


def check_tools(
    agent: str, each_tool: Sequence[ToolSpec], settings: Mapping[str, ToolSettings]
) -> None:
    """Raise if the tools of *agent* do not go together, or with the *settings* by name.

    Raises:
        ConfigError: two tools have one name, or a setting is for no tool of the agent.
    """
    names = [tool.name for tool in each_tool]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(agent, f"key 'tools': two are called {min(twice)!r}")
    tools = dict(zip(names, each_tool, strict=True))
    for name in settings.keys() - tools.keys():
        known = known_instead(name, sorted(tools), "it has")
        raise ConfigError(agent, f"key 'tool_settings.{name}': it has no tool {name!r}{known}")
    for name, each in settings.items():
        if each.on_timeout is not None and not starts_child(tools[name]):
            why = f"the tool {name!r} starts no child session: leave it out"
            raise ConfigError(agent, f"key 'tool_settings.{name}.on_timeout': {why}")
        if each.changes and not holds_changes(tools[name]):
            why = f"the tool {name!r} runs no isolated command: leave it out"
            raise ConfigError(agent, f"key 'tool_settings.{name}.changes': {why}")


def check_sandboxed(agent: str, tools: Sequence[ToolSpec]) -> None:
    """Raise if a tool of *agent* cannot work in a sandbox.

    Raises:
        ConfigError: leave the tool or the sandbox out.
    """
    for tool in tools:
        if not runs_in_sandbox(tool):
            why = f"{tool.name!r} needs the whole workspace, which is in the sandbox"
            raise ConfigError(agent, f"key 'tools': {why}: leave it out, a command does the same")
        if tool.changes:
            why = "what a command in a sandbox changes is in the sandbox only: leave it out"
            raise ConfigError(agent, f"key 'tool_settings.{tool.name}.changes': {why}")


def without_scheme(tool: str) -> str:
    """Return the name of a tool without `builtin:`, `python:` or `file:`, which only say more."""
    found = _WITH_SCHEME.fullmatch(tool)
    return next(filter(None, found.groups())) if found else tool


def recorded(tool: Tool, http: HttpAccess, skills: Sequence[Skill]) -> ToolSpec:
    """Return the recorded form of *tool*, with what the agent says to a shipped tool.

    Raises:
        ConfigError: the declaration of the tool is invalid.
        ToolImportError: the tool cannot be imported where it will run.
    """
    try:
        spec = tool.spec()
    except ValidationError as error:
        wrong = problems_of(error, ToolSpec)[0]
        raise ConfigError(f"tool {tool.name}", f"{wrong.key}: {wrong.reason}") from error
    if tool is read_skill:
        folders: JsonValue = {skill.name: str(skill.folder) for skill in skills}
        here = Demands(machine=machine_name())
        return spec.model_copy(update={"options": {"folders": folders}, "demands": here})
    if tool in (http_get, http_request):
        options = http.model_dump(mode="json", exclude_defaults=True)
        return spec.model_copy(update={"options": options, "sensitive": http.allow is None})
    return spec
