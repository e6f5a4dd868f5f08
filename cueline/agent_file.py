"""Reads an agent file, and merges it with the settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from cueline.agent import Agent
from cueline.config.config_source import ConfigSource, from_table, read_toml
from cueline.config.effective import EffectiveSettings, effective
from cueline.config.problem import problems_of
from cueline.config.settings import OF_PROVIDER, Settings
from cueline.default_agent import NAME as BUILT_IN
from cueline.default_agent import default_agent
from cueline.errors import ConfigError
from cueline.events.agent import AGENT_SCHEME, ModelChoice
from cueline.events.plan import PROCEDURE
from cueline.procedure import Procedure
from cueline.providers.allowed_address import check_allowed, check_variables
from cueline.providers.model_file import find_model_file
from cueline.workflow import OF_MODELS, WORKFLOW, Workflow

_NAMES = TypeAdapter(tuple[str, ...])

SHARED = Agent.model_fields.keys() & Settings.model_fields.keys()
"""The keys of both agent files and settings."""


class AgentRead(NamedTuple):
    """An agent file, merged with the settings."""

    agent: Agent
    effective: EffectiveSettings
    own: ConfigSource
    """The values that come from the file itself."""

    def check_addresses(self, path: Path) -> None:
        """Raise if the file sends a key, or to an address, that nobody has allowed.

        Raises:
            ConfigError: allow the address or variable, or correct the file.
        """
        settings, file = self.effective.settings, str(path)
        own = {key: getattr(self.agent, key) for key in OF_PROVIDER & self.own.keys()}
        mine = ModelChoice.model_construct(provider=self.agent.provider, **own)
        models = (mine, *(self.agent.fallback if "fallback" in self.own else ()))
        for each in models:
            check_allowed(each, settings.allow_base_urls, file=file)
        for each in models:
            check_variables(each, settings.allow_key_variables, file=file)


def read_agent(
    path: Path, *, over: Sequence[ConfigSource] = (), under: Sequence[ConfigSource] = ()
) -> AgentRead:
    """Read an agent file between the sources before it (*over*) and after it (*under*).

    The path `default` is the built-in agent, not a file.

    Raises:
        ConfigError: the file or a setting is missing or wrong; the message names the key.
    """
    if path == Path(BUILT_IN):
        return agent_in(default_agent(), Path("the built-in agent"), over=over, under=under)
    return agent_in(read_toml(path, "agent file"), path, over=over, under=under)


def agent_in(
    table: dict[str, Any],
    path: Path,
    *,
    over: Sequence[ConfigSource] = (),
    under: Sequence[ConfigSource] = (),
) -> AgentRead:
    """Return the agent in the *table* of a file, as `read_agent` does.

    Raises:
        ConfigError: a key or a setting is wrong; the message names it.
    """
    folder = path.resolve().parent
    if isinstance(table.get("workspace"), str):
        table["workspace"] = folder / table["workspace"]
    if "tools" in table:
        table["tools"] = [_in_folder(each, folder) for each in _named(table["tools"], path)]
    if "agents" in table:
        files = _named(table["agents"], path, "agents")
        table["agents"] = [str(folder / each) for each in files]
    others = table.get("fallback")
    for asks in (table, *(others if isinstance(others, list) else ())):
        find_model_file(asks, folder)
    kind: type[Agent] = Agent
    keys = SHARED
    if table.get("provider") in (WORKFLOW, PROCEDURE):
        kind = Workflow if table["provider"] == WORKFLOW else Procedure
        keys = SHARED - OF_MODELS - {"provider"}
        _find_steps(table, folder)
    shared = {key: table.pop(key) for key in keys if key in table}
    said = from_table(shared, path)
    holds = effective(*over, said, *under)
    for key in {key.partition(".")[0] for key in holds.given} & keys:
        table[key] = getattr(holds.settings, key)
    try:
        own = {key: each for key, each in said.items() if holds.given.get(key) is each}
        return AgentRead(kind.model_validate(table), holds, own)
    except ValidationError as error:
        raise ConfigError(str(path), str(problems_of(error, kind)[0])) from error


def _find_steps(table: dict[str, Any], folder: Path) -> None:
    """Make the paths in the steps of a workflow relative to *folder*."""
    steps = table.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict) and isinstance(step.get("agent"), str):
            step["agent"] = str(folder / step["agent"])
        if isinstance(step, dict) and isinstance(step.get("tool"), str):
            step["tool"] = _in_folder(step["tool"], folder)


def _in_folder(tool: str, folder: Path) -> str:
    """Return the name of a *tool* in an agent file with its path from that *folder*."""
    if tool.startswith(AGENT_SCHEME):
        return f"{AGENT_SCHEME}{folder / tool.removeprefix(AGENT_SCHEME)}"
    return str(folder / tool) if ".py:" in tool else tool


def _named(tools: object, path: Path, key: str = "tools") -> tuple[str, ...]:
    """Return the tools or agents of a file, which can only name them.

    Raises:
        ConfigError: they are no list of names.
    """
    try:
        return _NAMES.validate_python(tools)
    except ValidationError as error:
        raise ConfigError(str(path), str(problems_of(error, tuple, key)[0])) from error
