"""`cueline trust`, and what is refused before it: settings and logs that a folder brings."""

from typing import Annotated

import typer
from pydantic_core import to_jsonable_python

from cueline.agents.preflight import found_log
from cueline.cli.option import JsonOption
from cueline.cli.settings_context import SettingsContext, known_trust, settings_context_of
from cueline.config.config_file import FILE
from cueline.console.text import json_of, visible
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl


def trust(
    ctx: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no more.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Trust this project's cueline.toml: all its settings apply.

    What such a file widens, as addresses, keys, hooks, prices and automatic grants,
    is left out until you have seen it here and agreed. A change to the file has to
    be trusted anew. What it makes stricter counts at once. With --json it asks
    nothing: it shows what it would be asked for.

    \b
    Examples:
      cueline trust
      cueline trust --yes
      cueline trust --revoke
    """
    outside = settings_context_of(ctx)
    path = outside.path
    if path is None or not outside.is_found:
        raise ConfigError(FILE, "this project has none, and one that --config names needs no trust")
    content = path.read_bytes()
    wider = {k: to_jsonable_python(v.value, fallback=str) for k, v in outside.wider.items()}
    if revoke:
        known_trust().remove(path)
    elif wider:
        if not as_json:
            typer.echo(visible(f"{path} would also set"))
            for key, value in wider.items():
                typer.echo(visible(f"  {key} = {json_of(value)}"))
            yes = yes or typer.confirm("Trust it?", abort=True)
        if yes:
            known_trust().add(path, content)
    trusted = known_trust().holds(path, content)
    if as_json:
        typer.echo(json_of({"file": str(path), "wider": wider, "trusted": trusted}, indent=2))
    else:
        whole = "is trusted" if trusted or not (wider or revoke) else "is not trusted"
        typer.echo(visible(f"{path} {whole}"))


def check_trust(ctx: typer.Context, log: LogUrl, *, asks: bool) -> None:
    """Raise if settings or a *log* were found that *ctx*, which runs agents, is not to use.

    Args:
        ctx: of the command.
        log: where it is to run.
        asks: whether somebody can be asked at this terminal.

    Raises:
        ConfigError: trust the settings, or name the log; the message says how.
    """
    outside = settings_context_of(ctx)
    if outside.wider and not asks:
        keys = ", ".join(outside.wider)
        fix = f"see them with `cueline trust`, or name the file with `--config {outside.path}`"
        raise ConfigError(str(outside.path), f"not trusted, and nobody can be asked: {keys}; {fix}")
    check_log_is_known(ctx, log, asks=asks)


def check_log_is_known(ctx: typer.Context, log: LogUrl, *, asks: bool) -> None:
    """Raise if *log* was found, is not known, and nobody at this terminal says to use it.

    Raises:
        ConfigError: name the log; the message says how.
    """
    if _is_named(ctx, settings_context_of(ctx)) or (found := found_log(log)) is None:
        return  # whoever makes a log notes it
    path, id_ = found
    known = known_trust()
    if id_ and known.holds(path, id_.encode()):
        return
    question = f"{log} was found here, and you have not used it before. Use it?"
    if not (asks and typer.confirm(visible(question), err=True)):
        reason = f"you have not used this log before; if you trust it, add `--log {log}`"
        raise ConfigError(str(log), reason)
    if id_:
        known.add(path, id_.encode())


def _is_named(ctx: typer.Context, outside: SettingsContext) -> bool:
    """Whether a person named the log, and it was not found in this folder."""
    source = ctx.get_parameter_source("log")
    if source is not None and source.name == "DEFAULT_MAP":
        return not (outside.is_found and "log" in outside.file)
    return source is not None and source.name != "DEFAULT"
