"""Defines the options of all commands that run a session."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any

import typer

from cueline.agents.preflight import check_log
from cueline.cli.option import (
    DEFAULT_LOG,
    JsonOption,
    LogOption,
    PlainOption,
    ThinkingOption,
    is_typed,
    takes,
)
from cueline.cli.settings_context import SettingsContext, is_thinking_hidden, settings_context_of
from cueline.cli.terminal import is_attended, only_json_on_stdout
from cueline.cli.trust import check_trust
from cueline.client.runtime import On, PlaceName, Runtime, place_for, runtime_on
from cueline.errors import CuelineError
from cueline.events.log_url import LogUrl
from cueline.runtime.open_log import OpenLog

ACCEPT = "--accept-changed-tools"
AcceptOption = Annotated[
    bool,
    typer.Option(
        ACCEPT, help="Go on with its tools as they are now, where they have changed since."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The log, the place and the watcher of a session."""

    log: LogUrl
    on: On = "auto"
    detach: bool = False
    address: str | None = None
    attended: bool
    """Whether questions are asked at this terminal."""
    as_json: bool
    json_stream: bool = False
    """Whether each fact, and at the end the result, is printed as a line of JSON."""
    plain: bool = False
    hide_thinking: bool = False
    without_secrets: tuple[str, ...] = ()
    """The secrets that may be unset in this environment."""
    context: SettingsContext

    @property
    def place(self) -> PlaceName:
        """The place of the session."""
        return place_for(self.log, self.on, self.address)

    def runtime(
        self, log: OpenLog, on_trouble: Callable[[str, CuelineError], None]
    ) -> AbstractAsyncContextManager[Runtime]:
        """Open the place of the sessions of *log*; see `runtime_on`."""
        # The named cluster is for a log without a running `up`.
        address = None if self.place == "up" else self.address
        return runtime_on(log, on=self.on, address=address, on_trouble=on_trouble)

    @property
    def takes_long(self) -> str:
        """The step of a start that takes more than a second; empty if no step does."""
        if self.place == "inline":
            return ""
        if self.place == "up":
            return "connecting to the `cueline up` of this log"
        return f"connecting to Ray at {self.address}" if self.address else "starting Ray"


def run_options_of(
    ctx: typer.Context,
    *,
    inline: Annotated[
        bool, typer.Option("--inline", help="Drive it in this process, whatever else runs.")
    ] = False,
    ray: Annotated[
        bool, typer.Option("--ray", help="Start a Ray for this command, where none is to be used.")
    ] = False,
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Return the id at once; a running `cueline up` takes it."),
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            envvar="RAY_ADDRESS",
            metavar="HOST:PORT",
            help="The Ray cluster to run on, where no `cueline up` drives this log.",
        ),
    ] = None,
    without_secret: Annotated[
        list[str] | None,
        typer.Option(
            "--without-secret",
            metavar="NAME",
            help="Go on though this secret is not set here, and may be recorded; repeatable.",
        ),
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    json_stream: Annotated[
        bool,
        typer.Option(
            "--json-stream", help="Print each fact as it comes, and at last what --json prints."
        ),
    ] = False,
    plain: PlainOption = False,
    hide_thinking: ThinkingOption = None,
) -> RunOptions:
    """Return the values of the options.

    Raises:
        BadParameter: two options exclude each other.
        ConfigError: the found settings or the found log are not trusted.
        LogUnavailableError: no other process could run a session of this log.
    """
    modes = [name for name in ("inline", "ray", "detach") if ctx.params[name]]
    if len(modes) > 1:
        raise typer.BadParameter(f"--{modes[0]} and --{modes[1]} exclude each other")
    if ray or detach:
        check_log(log, shared=True)
    # RAY_ADDRESS may be there for other commands.
    if modes and modes != ["ray"] and is_typed(ctx, "address"):
        reason = f"--address names a Ray that --{modes[0]} does not use; leave one out"
        raise typer.BadParameter(reason)
    as_json = as_json or json_stream
    attended = is_attended() and not (detach or as_json)
    check_trust(ctx, log, asks=attended)
    return RunOptions(
        log=log,
        on="inline" if inline else "ray" if ray else "auto",
        detach=detach,
        address=address,
        attended=attended,
        as_json=as_json,
        json_stream=json_stream,
        plain=plain,
        hide_thinking=is_thinking_hidden(ctx, hide=hide_thinking),
        without_secrets=tuple(without_secret or ()),
        context=settings_context_of(ctx),
    )


def takes_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return *command*, whose first parameter is `RunOptions`, with the options of this class."""

    @wraps(command)
    def within(options: RunOptions, **given: Any) -> None:
        with only_json_on_stdout() if options.as_json else nullcontext():
            command(options, **given)

    return takes(run_options_of)(within)
