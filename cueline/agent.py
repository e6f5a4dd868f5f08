"""An agent as its author writes it: a Python object or a TOML file."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from cueline.actors.presence import machine_name
from cueline.errors import ConfigError
from cueline.events.agent import (
    AgentSpec,
    BreakerPolicy,
    Limits,
    Policy,
    Price,
    RetryPolicy,
    Workspace,
)
from cueline.tools.catalogue import builtin_tools
from cueline.tools.tool import Tool, load


class Agent(BaseModel):
    """Who works: a model, instructions, tools, and the limits of what it may do.

    `tools` are `Tool`s made by `@tool`, names of shipped tools, or
    `module:name`. `workspace` is the folder of its files. `secrets` names
    environment variables whose values are never recorded (I11).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")
    provider: str
    model: str
    parameters: dict[str, JsonValue] = {}
    instructions: str = ""
    tools: Sequence[Tool | str] = ()
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    breaker: BreakerPolicy = BreakerPolicy()
    policy: Policy = Policy()
    prices: dict[str, Price] = {}
    on_unknown_price: Literal["error", "assume", "ignore"] | None = None
    workspace: Path | None = None
    secrets: tuple[str, ...] = ()
    base_url: str | None = None
    key_variable: str | None = None

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read an agent file; relative paths in it are relative to the file.

        Raises:
            ConfigError: the file is missing or wrong; the message names the key.
        """
        try:
            table = tomllib.loads(path.read_text())
        except FileNotFoundError as error:
            raise ConfigError(str(path), "there is no such agent file") from error
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(path), f"it cannot be read: {error}") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(str(path), f"it is not TOML: {error}") from error
        folder = path.resolve().parent
        if isinstance(table.get("workspace"), str):
            table["workspace"] = folder / table["workspace"]
        if isinstance(table.get("tools"), list):
            table["tools"] = [_beside(tool, folder) for tool in table["tools"]]
        if table.get("provider") == "scripted" and isinstance(table.get("model"), str):
            table["model"] = str(folder / table["model"])
        try:
            return cls.model_validate(table)
        except ValidationError as error:
            raise ConfigError(str(path), _first_problem(error, cls)) from error

    def spec(self) -> AgentSpec:
        """Return what is recorded when a session starts: everything that decides how it runs.

        Raises:
            ConfigError: a tool is not known, or two have one name.
            ToolImportError: a tool cannot be imported where it will run.
        """
        tools = [self._tool(tool) for tool in self.tools]
        names = [tool.name for tool in tools]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ConfigError(self.name, f"two tools are called {min(twice)!r}")
        place = None
        if self.workspace is not None:
            place = Workspace(machine=machine_name(), path=str(self.workspace.resolve()))
        return AgentSpec(
            name=self.name,
            provider=self.provider,
            model=self.model,
            parameters=self.parameters,
            instructions=self.instructions,
            tools=tuple(tool.spec() for tool in tools),
            limits=self.limits,
            retry=self.retry,
            breaker=self.breaker,
            policy=self.policy,
            prices=self.prices,
            on_unknown_price=self.on_unknown_price,
            workspace=place,
            secrets=self.secrets,
            base_url=self.base_url,
            key_variable=self.key_variable,
        )

    def _tool(self, tool: Tool | str) -> Tool:
        if isinstance(tool, Tool):
            return tool
        if ":" in tool:
            return load(tool)
        shipped = builtin_tools()
        if tool not in shipped:
            known = ", ".join(sorted(shipped))
            raise ConfigError(
                self.name, f"tool {tool!r} is unknown; shipped are {known}, others are module:name"
            )
        return shipped[tool]


def secret_values(agent: AgentSpec | None, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the values that are never recorded: the agent's secrets and every provider's key."""
    names = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "RAY_AUTH_TOKEN"]
    if agent is not None:
        names += [*agent.secrets, *([agent.key_variable] if agent.key_variable else [])]
    return [environ[name] for name in names if environ.get(name)]


def _beside(tool: object, folder: Path) -> object:
    """Return `path.py:name` relative to the agent's file; any other tool as it is."""
    if isinstance(tool, str) and ".py:" in tool:
        return str(folder / tool)
    return tool


def _first_problem(error: ValidationError, shape: type[BaseModel]) -> str:
    # A typo in a key that is needed is two problems; the typo is the one to mend.
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        *tables, _ = (str(part) for part in problem["loc"])
        where = f"in [{'.'.join(tables)}]" if tables else "at the top level"
        known = ", ".join(sorted(_table_of(shape, tables).model_fields))
        return f"unknown key {key!r}; known {where} are {known}"
    if problem["type"] == "missing":
        return f"key {key!r} is missing"
    return f"key {key!r}: {problem['msg']}"


def _table_of(shape: type[BaseModel], tables: Sequence[str]) -> type[BaseModel]:
    """Return the shape of a table inside of one of *shape*."""
    keys = iter(tables)
    for table in keys:
        inner = shape.model_fields[table].annotation
        if get_origin(inner) is dict:
            next(keys, None)  # the name of an entry
            inner = get_args(inner)[1]
        assert isinstance(inner, type)
        assert issubclass(inner, BaseModel)
        shape = inner
    return shape
