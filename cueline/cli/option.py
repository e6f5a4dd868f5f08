"""Defines the options that several commands share, and converts their values."""

import inspect
import os
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cueline.cli import open_log
from cueline.cli.settings_context import NAMED_LOG, read
from cueline.config import config_file
from cueline.errors import ConfigError, CuelineError
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.client.reader import Reader


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids that begin with the typed text, for shell completion."""
    return completions(ctx, incomplete, lambda reader: reader.session_ids())


def complete_type(incomplete: str) -> list[str]:
    """Return the types of events that begin with the typed text, for shell completion."""
    from cueline.events.codec import FACTS

    return sorted(each for each in FACTS if each.startswith(incomplete))


def completions(
    ctx: typer.Context, incomplete: str, find: Callable[["Reader"], Awaitable[list[str]]]
) -> list[str]:
    """Return the names from *find* that begin with the typed text."""
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


if TYPE_CHECKING:
    from cueline.config.config_source import Flags


DEFAULT_LOG = config_file.DEFAULT_LOG

_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _note(ctx: typer.Context, log: LogUrl) -> LogUrl:
    ctx.meta[NAMED_LOG] = log
    return log


def labels_of(given: Iterable[str] | None) -> dict[str, str]:
    """Return the labels of `--label` options.

    Raises:
        ConfigError: a label is not KEY=VALUE.
    """
    return pairs_of("--label", "KEY=VALUE", given)


def amounts_of(given: Iterable[str] | None) -> dict[str, float]:
    """Return the amounts of `--resource` options.

    Raises:
        ConfigError: an amount is not NAME=NUMBER.
    """
    amounts = {}
    for each in given or ():
        name, _, number = each.partition("=")
        try:
            amounts[name] = float(number)
        except ValueError:
            raise ConfigError("--resource", f"{each!r} is not NAME=NUMBER") from None
    return amounts


def parameters_of(given: Iterable[str] | None) -> dict[str, str]:
    """Return the parameters of `--parameter` options, each as text.

    Raises:
        ConfigError: a parameter is not NAME=VALUE.
    """
    return pairs_of("--parameter", "NAME=VALUE", given)


def pairs_of(option: str, form: str, given: Iterable[str] | None) -> dict[str, str]:
    """Return the pairs of *option*, which have the *form* `NAME=VALUE`, as texts.

    Raises:
        ConfigError: one has another form.
    """
    pairs = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise ConfigError(option, f"{each!r} is not {form}")
        pairs[name] = value
    return pairs


def moment(option: str, text: str | None) -> datetime | None:
    """Return the time in the *text* of an option; None without the option.

    Raises:
        BadParameter: *text* is no time; the message has examples.
    """
    if text is None:
        return None
    try:
        if (age := _AGE.fullmatch(text)) is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[age[2]]: int(age[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        like = "2026-01-31 or 2026-01-31T12:00:00, and no age like 30d (m, h, d or w)"
        raise typer.BadParameter(f"{text!r} is no time like {like}", param_hint=option) from None


def takes(maker: Callable[..., object]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator: the function gets the result of *maker* as its first parameter.

    The function that typer gets has the options of *maker* and of the decorated function.
    """
    theirs = inspect.signature(maker).parameters

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*before: object, **given: Any) -> Any:
            made = maker(**{name: given.pop(name) for name in theirs})
            return command(made, *before, **given)

        _, *own = inspect.signature(command).parameters.values()
        # Python requires parameters without a default first; typer accepts any order.
        both = sorted(
            [*own, *theirs.values()], key=lambda each: (each.kind, each.default is not each.empty)
        )
        run.__annotations__ = {each.name: each.annotation for each in both}
        # typer reads this attribute.
        run.__dict__["__signature__"] = inspect.Signature(both)
        return run

    return with_options


def is_typed(ctx: typer.Context, option: str) -> bool:
    """Whether *option* is on the command line, not only in the environment."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _log_option(*names: str) -> Any:
    return typer.Option(
        *names,
        envvar="CUELINE_LOG",
        help="The log: a file, or a URL (`sqlite:///FILE`, `postgresql://HOST/DB`, `memory:`).",
        metavar="LOG",
        parser=LogUrl.of,
        callback=_note,
    )


LogOption = Annotated[LogUrl, _log_option("--log")]
AgainstOption = Annotated[LogUrl, _log_option("--against", "--log")]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="JSON, or text; repeatable."),
]
SessionFilter = Annotated[
    str | None,
    typer.Option(metavar="SESSION", help="Only of this session.", autocompletion=complete_session),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV, for a spreadsheet.")]
TreeOption = Annotated[
    bool, typer.Option("--tree", help="All descendants, too; with --json, a line for each.")
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
        help="Hide the model's thoughts at a terminal.",
        show_default=False,
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME", help="Record now, and start at TIME: 07:30, 2026-05-04T07:30, +10m."
    ),
]
EveryOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Start another one after each TIME, as 1h, until `stop`."),
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


def limits_of(
    *,
    max_turns: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls since the last message.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Input and output tokens, with descendants.")
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="US dollars, with descendants.")
    ] = None,
    time_budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time at work, in seconds or as 15m or 4h.")
    ] = None,
    max_wall: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time since the start, as 15m or 4h.")
    ] = None,
) -> "Flags":
    """Return the limits from the options."""
    return {
        "limits.max_turns": ("--max-turns", max_turns),
        "limits.max_tokens": ("--max-tokens", max_tokens),
        "limits.max_cost": ("--max-cost", max_cost),
        "limits.max_active_seconds": ("--time-budget", time_budget),
        "limits.max_wall_seconds": ("--max-wall", max_wall),
    }
