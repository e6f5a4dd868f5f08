"""Reads the settings around a command: environment, `cueline.toml`, and the person's own file.

The settings are read once, and only if any are set, so that `list` is quick.
"""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer

from cueline.config.config_file import (
    DEFAULT_LOG,
    LOG,
    PERSONAL,
    find_file,
    is_of_others,
    set_in,
)
from cueline.config.environment import HERE
from cueline.console.text import visible
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl
from cueline.files import Trust, personal_folder

if TYPE_CHECKING:
    from cueline.agents.agent_file import AgentRead
    from cueline.agents.secret import KeepsSecrets
    from cueline.config.config_source import ConfigSource
    from cueline.config.effective import EffectiveSettings
    from cueline.config.settings import Settings

TRUST = "trust"
"""The command that trusts a file."""
NAMED_LOG = "cueline.log"
"""The place in a command's `meta` for the log that it names."""
_HELP = {"--help", "-h"}


@dataclass(frozen=True, slots=True)
class SettingsContext:
    """The settings around a command, without the flags of the command."""

    path: Path | None = None
    """The `cueline.toml` in use."""
    environment: "ConfigSource" = field(default_factory=dict)
    file: "ConfigSource" = field(default_factory=dict)
    """The settings of this file that apply."""
    wider: "ConfigSource" = field(default_factory=dict)
    """The settings of this file that apply only if a person trusts it."""
    is_found: bool = False
    """Whether the file was found in a folder, and not named by a person."""
    foreign: Path | None = None
    """A found file that was not read, because other users may write it."""
    personal: "ConfigSource" = field(default_factory=dict)
    """The settings of the person's own file."""
    secrets: set[str] = field(default_factory=set)
    """The known variables with secret values."""

    @property
    def log(self) -> LogUrl | None:
        """The log that a file names."""
        named = (each["log"].value for each in (self.file, self.personal) if "log" in each)
        return next(named, None)

    @property
    def under(self) -> "tuple[ConfigSource, ...]":
        """The settings of the files, below an agent's own: for this user, and for all users."""
        return (*_of_this_user(self.file), *_of_this_user(self.personal))

    def note(self, agent: "KeepsSecrets") -> None:
        """Add the secret variables of this agent."""
        from cueline.agents.secret import secret_names

        self.secrets.update(secret_names(agent))

    def read_agent(self, file: Path, flags: "ConfigSource | None" = None) -> "AgentRead":
        """Return the agent of *file*; *flags* take precedence.

        Raises:
            ConfigError: correct the file, flag or variable that the message names.
        """
        from cueline.agents.agent_file import read_agent

        read = read_agent(file, over=(flags or {}, self.environment), under=self.under)
        self.note(read.agent)
        return read

    def effective(self) -> "EffectiveSettings":
        """Return the effective settings without flags and agent.

        Raises:
            ConfigError: two values do not go together.
        """
        from cueline.config.effective import effective

        return effective(self.environment, *self.under)

    def of_provider(self, name: str) -> "Settings":
        """Return the settings for agents of a provider that have none themselves.

        Raises:
            ConfigError: two values do not go together.
        """
        from cueline.config.config_source import SourcedValue
        from cueline.config.effective import effective

        asked = {"provider": SourcedValue(name, "the command")}
        return effective(asked, self.environment, *self.under).settings

    @property
    def settings(self) -> "Settings":
        """The settings that `effective` returns."""
        return self.effective().settings


def _of_this_user(file: "ConfigSource") -> "tuple[ConfigSource, ...]":
    if "users" not in file:
        return (file,)
    from cueline.config.config_source import of_user
    from cueline.config.environment import user_name

    return of_user(file, user_name()), file


def known_trust() -> Trust:
    """Return the files that this person trusts."""
    return Trust(personal_folder(HERE))


def read(config: Path | None) -> SettingsContext:
    """Return the settings of the environment, of *config* or the nearest file, and the own file.

    Raises:
        ConfigError: correct the variable or key that the message names.
    """
    found = None if config else find_file(_working_folder())
    path = config or found
    folder = personal_folder(HERE)
    own = folder / PERSONAL if folder is not None else None
    has_own = own is not None and own.is_file()
    if path is None and not has_own and set(set_in(os.environ)) <= {LOG}:
        return SettingsContext()
    from cueline.config.config_source import from_environment, from_file
    from cueline.events.agent_parts import variables_in

    personal = from_file(own) if own is not None and has_own else {}
    environment = from_environment(os.environ)
    if found is not None:
        outside = _with_found(SettingsContext(None, environment, personal=personal), found)
    else:
        file = {} if path is None else from_file(path)
        outside = SettingsContext(path, environment, file, personal=personal)
    settings = outside.settings
    outside.secrets.update(settings.secrets, filter(None, [settings.key_variable]))
    outside.secrets.update(variables_in(settings.headers))
    return outside


def _with_found(outside: SettingsContext, found: Path) -> SettingsContext:
    """Return *outside* with the settings of the file *found* that may apply."""
    if is_of_others(found):
        return replace(outside, foreign=found)
    from cueline.config.config_source import from_file
    from cueline.config.trust import found_settings

    file = from_file(found)
    counts, wider = found_settings(file, found, outside.settings)
    if wider and known_trust().holds(found, found.read_bytes()):
        counts, wider = {**counts, **wider}, {}
    return replace(outside, path=found, file=counts, wider=wider, is_found=True)


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        reason = "it was removed; change to one that is there"
        raise ConfigError("the working directory", reason) from None


def set_settings_context(ctx: typer.Context, words: list[str]) -> None:
    """Read the settings around the command in *words*; errors do not prevent the help.

    Raises:
        ConfigError: see `read`.
    """
    if _HELP.isdisjoint(words):
        ctx.obj = read(ctx.params.get("config"))


def tell_left_out(command: str | None, ctx: typer.Context | None) -> None:
    """Print to stderr which settings of a found file do not apply to *command*."""
    outside: SettingsContext | None = None if ctx is None else ctx.obj
    if outside is None:
        return
    said = ""
    if outside.foreign is not None:
        said = f"{outside.foreign}: not read, since others may write it or its folder"
    elif outside.wider and command != TRUST:
        keys = ", ".join(outside.wider)
        said = f"{outside.path}: not trusted, so left out: {keys}; see `cueline {TRUST}`"
    if said:
        typer.echo(visible(said), err=True)


def settings_context_of(ctx: typer.Context) -> SettingsContext:
    """Return the settings that were read for this command."""
    outside: SettingsContext = ctx.find_root().obj
    return outside


def is_thinking_hidden(ctx: typer.Context, *, hide: bool | None) -> bool:
    """Whether the model's thoughts are hidden, by the flag or else by the settings."""
    return settings_context_of(ctx).settings.hide_thinking if hide is None else hide


def defaults_of(command: Any, ctx: typer.Context | None) -> dict[str, Any]:
    """Return the defaults from the file for the options of *command*, called in *ctx*."""
    outside = None if ctx is None else ctx.obj
    if outside is None or outside.log is None:
        return {}
    children = getattr(command, "commands", ())
    return {"log": outside.log, **{name: {"log": outside.log} for name in children}}


def named_log(ctx: typer.Context) -> LogUrl:
    """Return the log of the command below *ctx*, from its options and the settings."""
    log: LogUrl = ctx.meta.get(NAMED_LOG, DEFAULT_LOG)
    return log


def naming(log: LogUrl) -> str:
    """Return the option that names *log* in a command, after a blank; empty for the default log."""
    return "" if log == DEFAULT_LOG else f" --log {visible(quote(str(log)))}"
