"""Reads an agent file, and merges it with the settings."""

import os
from collections.abc import Sequence
from copy import deepcopy
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from cueline.agents.agent import Agent
from cueline.agents.agent_tool import without_scheme
from cueline.agents.secret import check_allowed, check_variables
from cueline.agents.workflow import OF_MODELS, WORKFLOW, Procedure, Workflow
from cueline.config.config_source import ConfigSource, from_table, read_toml
from cueline.config.effective import EffectiveSettings, effective
from cueline.config.problem import problems_of
from cueline.config.settings import OF_PROVIDER, Settings
from cueline.errors import ConfigError
from cueline.events.agent import AGENT_SCHEME, ModelChoice
from cueline.events.agent_parts import PROCEDURE
from cueline.providers.defaults import find_model_file
from cueline.tools.shell import commands_problem, holding_problem, run_command

NAME: Final = "default"
"""The name of the built-in agent, used in place of the path of an agent file."""

_INSTRUCTIONS: Final = """\
You help a person with the files of one folder, through the tools.

- Look before you act: list, search and read what the task is about.
- Do what was asked, and no more. Make the smallest change that does it, in the style of the
  files that are there.
- A person is asked before a file is written or deleted, and before each command. If a call is
  denied, do not try it in another way: say what you wanted, or go on without it.
- Prefer read_file, list_files and search_files to commands that do the same.
- Change a part of a file by edit_file, several places or files by apply_patch; write_file is for
  new files.
- After a change, check it if there is a quick way, such as the folder's own tests.
- For a task of several steps, keep the list of them by todo.
- When a tool fails, read its error and correct the cause. Never invent a file's content.
- End with a short answer: what you found or changed, with the paths, and what is left to do.
  If you need to know something that only the person knows, end with that question.
"""
_TABLE: Final[dict[str, Any]] = {
    "name": NAME,
    "instructions": _INSTRUCTIONS,
    "tools": [
        "list_files",
        "search_files",
        "read_file",
        "write_file",
        "edit_file",
        "apply_patch",
        "delete_file",
        "run_command",
        "todo",
    ],
    "workspace": ".",
    "policy": {"approval": ["sensitive", "all_writes"]},
}


def default_agent() -> dict[str, Any]:
    """Return the built-in agent as the table of an agent file in the current folder.

    It has no `run_command` where commands cannot be isolated. What a command changes waits for a
    yes, where that is possible.
    """
    table = deepcopy(_TABLE)
    if commands_problem():
        table["tools"].remove(run_command.name)
    elif not holding_problem():
        table["tool_settings"] = {run_command.name: {"changes": "held"}}
    return table


_NAMES = TypeAdapter(tuple[str, ...])

SHARED = Agent.model_fields.keys() & Settings.model_fields.keys()
"""The keys that agent files and settings share."""


class AgentRead(NamedTuple):
    """An agent file, merged with the settings."""

    agent: Agent
    effective: EffectiveSettings
    own: ConfigSource
    """The values that come from the file itself."""

    def check_addresses(self, path: Path) -> None:
        """Raise if the agent file uses an address or variable that no person has allowed.

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
    """Read an agent file; the sources *over* precede it, the sources *under* follow it.

    The path `default` is the built-in agent, not a file.

    Raises:
        ConfigError: the file or a setting is missing or wrong; the message names the key.
    """
    if path == Path(NAME):
        return agent_in(default_agent(), Path("the built-in agent"), over=over, under=under)
    return agent_in(read_toml(path, "agent file"), path, over=over, under=under)


def agent_in(
    table: dict[str, Any],
    path: Path,
    *,
    over: Sequence[ConfigSource] = (),
    under: Sequence[ConfigSource] = (),
) -> AgentRead:
    """Return the agent in *table*, the content of the agent file *path*; see `read_agent`.

    Raises:
        ConfigError: a key or a setting is wrong; the message names the key.
    """
    folder = path.resolve().parent
    if isinstance(table.get("workspace"), str):
        table["workspace"] = folder / table["workspace"]
    if isinstance(table.get("mcp_config"), str):
        table["mcp_config"] = folder / table["mcp_config"]
    _find_granted(table, folder)
    if "tools" in table:
        table["tools"] = [_in_folder(each, folder) for each in _named(table["tools"], path)]
    if "agents" in table:
        files = _named(table["agents"], path, "agents")
        table["agents"] = [str(folder / each) for each in files]
    if "skills" in table:
        table["skills"] = [folder / each for each in _named(table["skills"], path, "skills")]
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
    """Replace the paths in the steps of a workflow by paths below *folder*."""
    steps = table.get("steps")
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict) and isinstance(step.get("agent"), str):
            step["agent"] = str(folder / step["agent"])
        if isinstance(step, dict) and isinstance(step.get("tool"), str):
            step["tool"] = _in_folder(step["tool"], folder)


def _in_folder(tool: str, folder: Path) -> str:
    """Return the name of *tool* in an agent file, with the path of the tool below *folder*."""
    tool = without_scheme(tool)
    if tool.startswith(AGENT_SCHEME):
        return f"{AGENT_SCHEME}{folder / tool.removeprefix(AGENT_SCHEME)}"
    return str(folder / tool) if ".py:" in tool else tool


def _find_granted(table: dict[str, Any], folder: Path) -> None:
    """Replace the paths that isolation grants by absolute ones; `~` is the home folder."""
    servers = table.get("mcp")
    tables = [table, *(servers.values() if isinstance(servers, dict) else ())]
    found = [each.get("isolation") for each in tables if isinstance(each, dict)]
    granting = [each for each in found if isinstance(each, dict)]
    for isolation, key in product(granting, ("read", "write")):
        if isinstance(paths := isolation.get(key), list):
            isolation[key] = [
                os.path.normpath(folder / Path(path).expanduser()) for path in map(str, paths)
            ]


def _named(tools: object, path: Path, key: str = "tools") -> tuple[str, ...]:
    """Return the value of *key* in the file *path*, which names tools or agents.

    Raises:
        ConfigError: the value is not a list of names.
    """
    try:
        return _NAMES.validate_python(tools)
    except ValidationError as error:
        raise ConfigError(str(path), str(problems_of(error, tuple, key)[0])) from error
