"""The options that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from cueline.cli.name_lookup import complete_session
from cueline.config import config_file
from cueline.console.text import visible
from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl

DEFAULT_LOG = config_file.DEFAULT_LOG

_NAMED_LOG = "cueline.log"


def _note(ctx: typer.Context, log: LogUrl) -> LogUrl:
    ctx.meta[_NAMED_LOG] = log
    return log


def named_log(ctx: typer.Context) -> LogUrl:
    """Return the log that the command below *ctx* is about, as far as it was told."""
    log: LogUrl = ctx.meta.get(_NAMED_LOG, DEFAULT_LOG)
    return log


def naming(log: LogUrl) -> str:
    """Return what a command has to say to be about *log*, with a blank before it."""
    return "" if log == DEFAULT_LOG else f" --log {visible(quote(str(log)))}"


def labels_of(given: Iterable[str] | None) -> dict[str, str]:
    """Return the labels of `--label` options.

    Raises:
        ConfigError: one is not KEY=VALUE.
    """
    return _pairs("--label", "KEY=VALUE", given)


def parameters_of(given: Iterable[str] | None) -> dict[str, str]:
    """Return the parameters of `--parameter` options, each as text.

    Raises:
        ConfigError: one is not NAME=VALUE.
    """
    return _pairs("--parameter", "NAME=VALUE", given)


def _pairs(option: str, form: str, given: Iterable[str] | None) -> dict[str, str]:
    pairs = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise ConfigError(option, f"{each!r} is not {form}")
        pairs[name] = value
    return pairs


def is_typed(ctx: typer.Context, option: str) -> bool:
    """Whether *option* is on the command line, and not only in the environment."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


LogOption = Annotated[
    LogUrl,
    typer.Option(
        "--log",
        envvar="CUELINE_LOG",
        help="The log: a file, or a URL (`sqlite:///FILE`, `postgresql://HOST/DB`, `memory:`).",
        metavar="LOG",
        parser=LogUrl.of,
        callback=_note,
    ),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="JSON, or text; repeatable."),
]
SessionFilter = Annotated[
    str | None,
    typer.Option(metavar="SESSION", help="Only of this session.", autocompletion=complete_session),
]
TimeBudgetOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time at work, in seconds or as 15m or 4h.")
]
MaxWallOption = Annotated[
    str | None, typer.Option(metavar="TIME", help="Time since the start, likewise.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
TreeOption = Annotated[
    bool, typer.Option("--tree", help="All sessions below it, too; with --json, a line for each.")
]
PlainOption = Annotated[
    bool,
    typer.Option(
        "--plain", help="Plain text: no colours, no status line, nothing rendered or wrapped."
    ),
]
AttachOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--attach", metavar="FILE", help="Send this image, PDF or text file with it; repeatable."
    ),
]
ThinkingOption = Annotated[
    bool | None,
    typer.Option(
        "--hide-thinking/--show-thinking",
        help="Whether the model's thoughts are left out at a terminal.",
        show_default=False,
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Record it now, and start it then: 07:30, 2026-05-04T07:30, +10m."
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Start another one so long after it, as 1h, and so on, until `stop`."
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        help="The session's id, or the beginning of it.",
        metavar="SESSION",
        autocompletion=complete_session,
        show_default=False,
    ),
]
