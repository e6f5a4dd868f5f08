"""Commands whose modules are imported when they are used, so that `--help` and `list` are quick."""

from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from cueline.cli.settings_context import defaults_of, tell_left_out


class LazyCommand(TyperCommand):
    """A command that knows its name and short help, and imports the rest when it is called."""

    def __init__(self, name: str, short_help: str, place: str = "") -> None:
        """Take the *place* of the function or group: `MODULE:NAME`, by default twice the name."""
        super().__init__(name, short_help=short_help)
        self.place = place or f"{name}:{name}"

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(f"cueline.cli.{module}"), attribute)
        around = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=self.name)
        else:
            around.command(self.name)(found)
        return get_group(around).commands[str(self.name)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Read what was typed behind the name of the command."""
        tell_left_out(self.name, parent)
        defaults = defaults_of(self.loaded, parent)
        return self.loaded.make_context(info_name, args, parent, default_map=defaults, **extra)
