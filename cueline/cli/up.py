"""`cueline up`: keep the hosts and runners of a log running."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from cueline.agents.preflight import check_log
from cueline.cli import open_log
from cueline.cli.failure import Exit, print_redacted
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption
from cueline.cli.serve import HOST, CertificateOption, KeyOption, ProxyOption, address_of
from cueline.cli.settings_context import SettingsContext, settings_context_of
from cueline.cli.terminal import is_attended
from cueline.cli.trust import check_trust
from cueline.cli.up_process import keep, leave, place_of, print_up
from cueline.client.blueprint_folder import read_blueprints
from cueline.client.server_address import server_of
from cueline.console.progress import progress
from cueline.errors import ClusterError, ConfigError
from cueline.events.log_url import LogUrl
from cueline.runtime.on_ray import dispatcher_lives
from cueline.runtime.up import UpPlan
from cueline.runtime.up_record import UpRecord, find_up, up_output

READY_SECONDS = 120.0
_LAST_PORT = 65535
_MOST = 1000
"""The most workers of each kind; more would take the machine down."""
LOOK_SECONDS = 0.1
_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""The variable that Ray sets in the processes of a job."""


class _Served(NamedTuple):
    """Where the HTTP server listens."""

    place: str | None
    """As `[HOST]:PORT`; None: there is none."""
    certificate: Path | None
    key: Path | None
    behind_proxy: bool

    def words(self) -> list[str]:
        """Return the options that protect the server."""
        files = {"--certificate": self.certificate, "--key": self.key}
        named = [word for name, file in files.items() if file for word in (name, str(file))]
        return [*named, *["--behind-proxy"] * self.behind_proxy]

    def command(self, outside: SettingsContext, log: LogUrl) -> tuple[str, ...]:
        """Return the command of the server; empty without one.

        Raises:
            ConfigError: the place is no `[HOST]:PORT`, or tokens would be sent unencrypted.
        """
        if self.place is None:
            return ()
        host, colon, port = self.place.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > _LAST_PORT:
            raise ConfigError("--serve", f"{self.place!r} is not of the form :8642 or HOST:8642")
        host = host.strip("[]") or HOST
        address_of(host, int(port), self.certificate, self.key, behind_proxy=self.behind_proxy)
        settings = [] if outside.path is None else ["--config", str(outside.path)]
        place = ["--log", str(log), "--host", host, "--port", port]
        words = ["serve", "--json", "--while-stdin", *place, *self.words()]
        return tuple(keeper_command([*settings, *words]))


_NOWHERE = _Served(None, None, None, behind_proxy=False)


def up(
    ctx: typer.Context,
    *,
    address: Annotated[
        str | None,
        typer.Option(
            envvar="RAY_ADDRESS",
            metavar="HOST:PORT",
            help="A Ray cluster with a node on this machine; else a new one.",
        ),
    ] = None,
    hosts: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=_MOST,
            metavar="N",
            help="Processes that run sessions; else as asked for last, at first 1.",
        ),
    ] = None,
    runners: Annotated[
        int | None,
        typer.Option(
            min=1, max=_MOST, metavar="N", help="Processes that run tools; else as for hosts."
        ),
    ] = None,
    recover: Annotated[
        str,
        typer.Option(
            metavar="WHICH", help="Sessions that were left running: `all` go on, or `none`."
        ),
    ] = "all",
    blueprints: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Agent files that the runners offer, for `cueline submit`."
        ),
    ] = None,
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST]:PORT", help="Also serve HTTP and pages there: see `cueline serve`."
        ),
    ] = None,
    certificate: CertificateOption = None,
    key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready.")] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Keep cueline running: run every session of the log, also after a crash.

    It starts Ray on this machine, or uses the cluster at --address. Ctrl-C ends it;
    running sessions then rest, and continue with the next `up`.
    With --detach on a cluster, Ray keeps the actors until `cueline down`.

    \b
    Examples:
      cueline up
      cueline up --detach --runners 2
      cueline up --blueprints agents
      cueline up --serve :8642
      cueline up --address 10.0.0.5:6379 --recover none
    """
    if recover not in {"all", "none"}:
        raise typer.BadParameter(f"{recover!r} is neither `all` nor `none`")
    outside = settings_context_of(ctx)
    check_trust(ctx, log, asks=is_attended() and not (detach or as_json))
    settings = outside.settings
    named = settings.runner.blueprints
    folder = blueprints or (None if named is None else Path(named))
    offered = () if folder is None else read_blueprints(folder, under=outside.under)
    for each in offered:
        outside.note(each)
    served = _Served(serve, certificate, key, behind_proxy)
    plan = UpPlan(
        log=log,
        # An empty variable counts as not set.
        address=address or None,
        hosts=hosts,
        runners=runners,
        recover=recover == "all",
        settings=settings,
        blueprints=offered,
        folder=folder,
        serve=served.command(outside, log),
    )
    exists, files = check_log(log, shared=True)  # before `_detach` makes a folder
    _check_lasts(log, files)
    running = _running(log)
    if running is not None and not _replaces(running, address):
        text = f"up already: {place_of(running)}; `cueline down` ends it"
        print_up(running, text, as_json=as_json)
        same = running.version == version("cueline")
        raise typer.Exit(Exit.DONE if detach and same else Exit.REFUSED)
    if exists:
        # Not in the actors: the projection of a long log takes longer than they have to start.
        open_log.ask(log, lambda reader: reader.catch_up())
    if detach and plan.address is None:
        record, said = _detach(plan, outside, served)
        text = f"up: {place_of(record)}; what it says goes to {said}"
        print_up(record, text, as_json=as_json)
        return
    work = leave if detach else keep
    open_log.run(work(plan, outside, as_json=as_json))


def _replaces(running: UpRecord, address: str | None) -> bool:
    """Whether this `up` takes over from an `up` of another version that Ray keeps."""
    if running.kept_by == "process" or running.version == version("cueline") or not address:
        return False
    typer.echo(f"taking over from cueline {running.version}", err=True)
    return True


def _check_lasts(log: LogUrl, files: Sequence[Path]) -> None:
    """Raise for a log in the folder of a Ray job, which Ray deletes after the job.

    Raises:
        ConfigError: name a log that stays.
    """
    if _JOB in os.environ and any(file.absolute().is_relative_to(Path.cwd()) for file in files):
        reason = "it is in the folder of this Ray job, which Ray deletes; name one that stays"
        raise ConfigError(str(log), f"{reason}, as `--log postgresql://HOST/DATABASE`")


def _running(log: LogUrl) -> UpRecord | None:
    """Return the record of the log's `cueline up`; None if no `up` runs or answers."""
    running = find_up(log)
    if running is None or (running.kept_by == "process" and running.lives):
        return running
    return running if open_log.ask(log, lambda reader: dispatcher_lives(reader.log)) else None


def _words(plan: UpPlan) -> list[str]:
    """Return the options for the command line of the `up` process."""
    recover = "all" if plan.recover else "none"
    given = {"--hosts": plan.hosts, "--runners": plan.runners, "--blueprints": plan.folder}
    set_ = {"--log": plan.log, "--recover": recover} | {k: v for k, v in given.items() if v}
    return [word for option, value in set_.items() for word in (option, str(value))]


def keeper_command(words: Sequence[str]) -> list[str]:
    """Return the command of a process that imports nothing from the working folder."""
    return [sys.executable, "-P", "-m", "cueline.cli", *words]


def _detach(
    plan: UpPlan, outside: SettingsContext, served: _Served = _NOWHERE
) -> tuple[UpRecord, Path]:
    """Start `up` as a separate process; when it is ready, return its record and output file."""
    said = up_output(plan.log)
    settings = [] if outside.path is None or outside.is_found else ["--config", str(outside.path)]
    at = [] if served.place is None else ["--serve", served.place, *served.words()]
    # Not through a link: it could lead to a file that must not be overwritten.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(said, flags, 0o600), "wb") as output:
        keeper = subprocess.Popen(  # noqa: S603 - our own command
            keeper_command([*settings, "up", *_words(plan), *at]),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C in this terminal is not meant for it.
            start_new_session=True,
        )
    try:
        return _ready(keeper, plan, said, outside), said
    except BaseException:
        # After Ctrl-C, too: else the log would be up a moment later, without a waiting command.
        keeper.terminate()
        raise


def _listens(plan: UpPlan) -> bool:
    """Whether the HTTP server listens, if there is to be one."""
    return not plan.serve or open_log.ask(plan.log, lambda each: server_of(each.log)) is not None


def _ready(
    keeper: subprocess.Popen[bytes], plan: UpPlan, said: Path, outside: SettingsContext
) -> UpRecord:
    """Wait until the `up` of *plan* is ready, and its server, and return its record.

    Raises:
        Exit: the process has ended; its output is printed.
        ClusterError: the process is not ready in time.
    """
    deadline = time.monotonic() + READY_SECONDS
    with progress("starting Ray, and what drives the sessions") as stop:
        while (running := find_up(plan.log)) is None or not _listens(plan):
            with suppress(subprocess.TimeoutExpired):
                code = keeper.wait(LOOK_SECONDS)
                stop()
                print_redacted(said.read_text(errors="replace").strip(), outside)
                raise typer.Exit(code or Exit.FAILED)
            if time.monotonic() > deadline:
                reason = f"it was not ready in time; {said} has what it said"
                raise ClusterError("`cueline up`", reason)
    return running
