"""Which session, approval or log a user means."""

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

from cueline.cli import open_log
from cueline.cli.settings_context import read
from cueline.config.config_file import DEFAULT_LOG
from cueline.errors import CuelineError
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.client.reader import Reader


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids that begin with what was typed, for the shell."""
    return completions(ctx, incomplete, lambda reader: reader.session_ids())


def completions(
    ctx: typer.Context, incomplete: str, find: Callable[["Reader"], Awaitable[list[str]]]
) -> list[str]:
    """Return those of the names that *find* returns which begin with what was typed."""
    try:
        return [each for each in open_log.ask(log_of(ctx), find) if each.startswith(incomplete)]
    except CuelineError:
        return []


def log_of(ctx: typer.Context) -> LogUrl:
    """Return the log for shell completion, from the words typed so far.

    Raises:
        ConfigError: a variable or a settings file is wrong.
    """
    set_ = read(ctx.find_root().params.get("config")).log
    named = ctx.params.get("log") or os.environ.get("CUELINE_LOG")
    return LogUrl.of(named or set_ or DEFAULT_LOG)
