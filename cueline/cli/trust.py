"""`cueline trust`: trust the settings of a folder; refuses untrusted settings and logs."""

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

    Values that permit more, such as addresses, keys, hooks, prices and automatic grants,
    are left out until you have seen them here and agreed. A changed file has to be
    trusted again. Stricter values apply at once. With --json the command does not ask:
    it shows the values.

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
    """Raise if *ctx*, which runs agents, may not use the found settings or the found *log*.

    Args:
        ctx: the context of the command.
        log: the log of its session.
        asks: whether a person can be asked at this terminal.

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
    """Raise if *log* was found, is unknown, and no person at this terminal agrees to its use.

    Raises:
        ConfigError: name the log; the message says how.
    """
    if _is_named(ctx, settings_context_of(ctx)) or (found := found_log(log)) is None:
        return  # the creation of a log records the trust
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
