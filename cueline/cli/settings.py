"""`cueline config show`: show every setting and its source."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from cueline.cli.option import JsonOption
from cueline.cli.settings_context import settings_context_of
from cueline.config.effective import EffectiveSettings
from cueline.config.settings import APPROVAL_SECONDS, leaves
from cueline.console.text import json_of, visible

_GROUP = """Show the settings around the commands.

\b
Example:
  cueline config show
"""
_WIDEST = 40


class SettingRow(NamedTuple):
    """One shown line."""

    key: str
    value: Any
    source: str
    variable: str | None


group = typer.Typer(help=_GROUP, no_args_is_help=True)


@group.command("show", short_help="Show every setting and its source.")
def show(
    ctx: typer.Context,
    *,
    agent: Annotated[
        Path | None,
        typer.Option("--agent", "-a", help="As they hold for this agent.", metavar="FILE"),
    ] = None,
    only_set: Annotated[
        bool, typer.Option("--set", help="Only those that are no defaults.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show every setting and its source.

    A value comes from a flag of the command, else from the environment, else from
    the agent's file, else from the project's cueline.toml, else from your own
    ~/.config/cueline/config.toml; else it is the default. Values of a cueline.toml
    that permit more apply only after `cueline trust`.

    \b
    Examples:
      cueline config show
      cueline config show --agent agent.toml --set
      CUELINE_MAX_TURNS=5 cueline config show --json
    """
    outside = settings_context_of(ctx)
    effective = outside.effective()
    if agent is not None:
        effective = outside.read_agent(agent).effective
    shown = [each for each in settings_of(effective) if not only_set or each.key in effective.given]
    if as_json:
        settings = {each.key: each._asdict() for each in shown}
        file = None if outside.path is None else str(outside.path)
        typer.echo(json_of({"file": file, "settings": settings}, indent=2))
        return
    where = outside.path or "none; a cueline.toml of this project would be read"
    typer.echo(visible(f"file: {where}"))
    for line in _aligned([(each.key, _said(each.value), each.source) for each in shown]):
        typer.echo(visible(line))


def _said(value: Any) -> str:
    """Return a value in one line; a dash for none."""
    if value in (None, [], {}):
        return "-"
    return visible(value) if isinstance(value, str) else json_of(value)


def _aligned(rows: list[tuple[str, str, str]]) -> Iterator[str]:
    widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
    for key, value, source in rows:
        yield f"{key:<{widths[0]}}  {value:<{min(widths[1], _WIDEST)}}  {source}"


def settings_of(effective: EffectiveSettings) -> Iterator[SettingRow]:
    """Yield every effective setting."""
    table = effective.settings.model_dump(mode="json")
    for key, leaf in leaves().items():
        value: Any = table
        for part in key.split("."):
            value = value[part]
        source = effective.sources.get(key, "default")
        if key == APPROVAL_SECONDS and key not in effective.given:
            value, source = None, "[approval] decides"
        yield SettingRow(key, value, source, leaf.variable)
