"""What is set outside of the command: the environment and `cueline.toml`, read once.

Nothing is read where nothing is set, so that a list stays quick.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cueline.config.config_file import LOG, find_file, set_in
from cueline.errors import ConfigError
from cueline.events.header import variables_in
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.agent_file import AgentRead
    from cueline.config.config_source import ConfigSource
    from cueline.config.effective import EffectiveSettings
    from cueline.config.settings import Settings
    from cueline.secret import KeepsSecrets

_HELP = {"--help", "-h"}


@dataclass(frozen=True, slots=True)
class SettingsContext:
    """The settings around a command, without its own flags."""

    path: Path | None = None
    """The `cueline.toml` that holds."""
    environment: "ConfigSource" = field(default_factory=dict)
    file: "ConfigSource" = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    """Variables whose values are not to be told, as far as this command has heard of them."""

    @property
    def log(self) -> LogUrl | None:
        """The log that the file names."""
        return self.file["log"].value if "log" in self.file else None

    @property
    def under(self) -> "tuple[ConfigSource, ...]":
        """What the file says, below an agent's own: for this user, and for all."""
        if "users" not in self.file:
            return (self.file,)
        from cueline.config.config_source import of_user
        from cueline.environment import user_name

        return of_user(self.file, user_name()), self.file

    def note(self, agent: "KeepsSecrets") -> None:
        """Learn which variables this agent keeps secret."""
        from cueline.secret import secret_names

        self.secrets.update(secret_names(agent))

    def read_agent(self, file: Path, flags: "ConfigSource | None" = None) -> "AgentRead":
        """Return the agent of *file*; *flags* go before what it says.

        Raises:
            ConfigError: mend the file, flag or variable that it names.
        """
        from cueline.agent_file import read_agent

        read = read_agent(file, over=(flags or {}, self.environment), under=self.under)
        self.note(read.agent)
        return read

    def effective(self) -> "EffectiveSettings":
        """Return what holds where neither a flag nor an agent says anything.

        Raises:
            ConfigError: two values do not go together.
        """
        from cueline.config.effective import effective

        return effective(self.environment, *self.under)

    @property
    def settings(self) -> "Settings":
        """The settings that `effective` returns."""
        return self.effective().settings


def read(config: Path | None) -> SettingsContext:
    """Return what the environment sets, and the file *config*, or else the nearest.

    Raises:
        ConfigError: mend the variable, or the key of the file, that it names.
    """
    path = config or find_file(_working_folder())
    if path is None and set(set_in(os.environ)) <= {LOG}:
        return SettingsContext()
    from cueline.config.config_source import from_environment, from_file

    file = {} if path is None else from_file(path)
    outside = SettingsContext(path, from_environment(os.environ), file)
    settings = outside.settings
    outside.secrets.update(settings.secrets, filter(None, [settings.key_variable]))
    outside.secrets.update(variables_in(settings.headers))
    return outside


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        reason = "it was removed; change to one that is there"
        raise ConfigError("the working directory", reason) from None


def set_settings_context(ctx: typer.Context, words: list[str]) -> None:
    """Read what is set outside, for the command that *words* say; help is told in any case.

    Raises:
        ConfigError: see `read`.
    """
    if _HELP.isdisjoint(words):
        ctx.obj = read(ctx.params.get("config"))


def settings_context_of(ctx: typer.Context) -> SettingsContext:
    """Return what was read for this command."""
    outside: SettingsContext = ctx.find_root().obj
    return outside


def is_thinking_hidden(ctx: typer.Context, *, hide: bool | None) -> bool:
    """Whether the model's thoughts are left out, by the flag or else by the settings."""
    return settings_context_of(ctx).settings.hide_thinking if hide is None else hide


def defaults_of(command: Any, ctx: typer.Context | None) -> dict[str, Any]:
    """Return what the file says of the options of *command*, which is called in *ctx*."""
    outside = None if ctx is None else ctx.obj
    if outside is None or outside.log is None:
        return {}
    children = getattr(command, "commands", ())
    return {"log": outside.log, **{name: {"log": outside.log} for name in children}}
