"""Reads the blueprints of a folder: each agent file is a blueprint, named like its agent."""

from collections.abc import Sequence
from pathlib import Path

from cueline.agents.agent_file import read_agent
from cueline.agents.preflight import agent_to_record
from cueline.config.config_source import ConfigSource
from cueline.config.environment import user_name
from cueline.deciders.fleet import RESERVED
from cueline.errors import ConfigError
from cueline.events.agent import AgentSpec


def read_blueprints(folder: Path, *, under: Sequence[ConfigSource] = ()) -> tuple[AgentSpec, ...]:
    """Return the agents of the `*.toml` files in *folder*, in their recorded form.

    Raises:
        ConfigError: correct the folder or file that the message names; nothing is offered.
        ToolImportError: make the tool importable for the runners.
    """
    if not folder.is_dir():
        raise ConfigError(str(folder), "this folder of blueprints is no folder; make it first")
    files = sorted(folder.glob("*.toml"))
    if not files:
        raise ConfigError(str(folder), "this folder of blueprints has no agent file (*.toml)")
    found: dict[str, tuple[Path, AgentSpec]] = {}
    for path in files:
        read = read_agent(path, under=under)
        read.check_addresses(path)
        spec = agent_to_record(read.agent).model_copy(update={"key_owner": user_name()})
        if spec.name in RESERVED:
            raise ConfigError(str(path), f"{spec.name!r} is cueline's own agent; name it otherwise")
        if spec.name in found:
            other = found[spec.name][0]
            raise ConfigError(str(path), f"{other} has the name {spec.name!r}, too; rename one")
        found[spec.name] = path, spec
    return tuple(spec for _, spec in found.values())
