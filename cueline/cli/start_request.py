"""Starts a session: everything is checked before anything is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from cueline.agent import SHARED, read_agent
from cueline.cli.exit_report import report
from cueline.cli.failure import Exit, is_of_output
from cueline.cli.option import is_typed
from cueline.cli.session_run import Record, RunTarget, drive
from cueline.cli.settings_context import SettingsContext, settings_context_of
from cueline.cli.terminal import is_attended
from cueline.cli.up_lookup import command, note_detached, resume_command
from cueline.client.client import Client, open_client
from cueline.client.export import event_document
from cueline.client.start import StartRequest, check_id_is_free, start_request
from cueline.config.config_source import Flags, from_flags
from cueline.config.settings import APPROVAL_SECONDS, ApprovalSettings, Settings
from cueline.console.screen import Screen
from cueline.console.text import json_of
from cueline.errors import ConfigError
from cueline.events.agent import Policy
from cueline.events.log_url import LogUrl
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, RecordedEvent
from cueline.events.stream import shown, sibling
from cueline.preflight import check_answerable, check_log, check_log_is_out_of_reach
from cueline.runtime import On
from cueline.wiring import OpenLog


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Where a session is to be recorded and driven, and who watches."""

    log: LogUrl
    on: On
    detach: bool
    address: str | None
    attended: bool
    as_json: bool
    json_stream: bool
    """Whether each fact is printed as it comes, and at last the result, one a line."""
    plain: bool
    settings: Settings
    without_secrets: tuple[str, ...]
    """Which need not be known here."""


def run_options_of(
    ctx: typer.Context,
    log: LogUrl,
    *,
    inline: bool,
    ray: bool,
    detach: bool,
    address: str | None,
    as_json: bool,
    json_stream: bool = False,
    plain: bool = False,
    without_secrets: Sequence[str] | None,
) -> RunOptions:
    """Return what the options say that all have which drive a session.

    Raises:
        BadParameter: two of them exclude each other.
    """
    modes = [name for name, chosen in (("inline", inline), ("ray", ray)) if chosen]
    modes += ["detach"] if detach else []
    if len(modes) > 1:
        raise typer.BadParameter(f"--{modes[0]} and --{modes[1]} exclude each other")
    if ray or detach:
        check_log(log, shared=True)
    # RAY_ADDRESS may be there for other commands.
    if modes and modes != ["ray"] and is_typed(ctx, "address"):
        reason = f"--address names a Ray that --{modes[0]} does not use; leave one out"
        raise typer.BadParameter(reason)
    return RunOptions(
        log=log,
        on="inline" if inline else "ray" if ray else "auto",
        detach=detach,
        address=address,
        attended=is_attended() and not (detach or as_json or json_stream),
        as_json=as_json or json_stream,
        json_stream=json_stream,
        plain=plain,
        settings=settings_context_of(ctx).settings,
        without_secrets=tuple(without_secrets or ()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What a person asks for when they start a session."""

    goal: str
    flags: Flags
    """What the command line sets, over the agent's file."""
    require_approval: bool
    workspace: Path | None
    labels: dict[str, str]
    stay_open: bool
    attended: bool
    without_secrets: tuple[str, ...]
    id: str | None


def prepare_agent(file: Path, ask: StartOptions, outside: SettingsContext) -> StartRequest:
    """Return what is asked for, checked.

    Raises:
        ConfigError: mend the file, flag or variable that it names.
        ToolImportError: make the tool importable.
    """
    over = (from_flags(ask.flags), outside.environment)
    read = read_agent(file, over=over, under=(outside.file,))
    agent, effective, _ = read
    outside.note(agent)
    read.check_addresses(file)
    sources = {key: at for key, at in effective.sources.items() if key.partition(".")[0] in SHARED}
    policy = agent.policy
    if APPROVAL_SECONDS not in effective.given:
        policy = with_time_to_answer(policy, effective.settings.approval, attended=ask.attended)
    if ask.require_approval and "sensitive" not in policy.approval:
        # Beside what else is asked for, not in its place.
        profiles = dict.fromkeys((*policy.approval, "sensitive"))
        profiles.pop("off", None)
        policy = policy.model_copy(update={"approval": tuple(profiles)})
        sources["policy.approval"] = "flag --require-approval"
    workspace = ask.workspace or agent.workspace
    asked = agent.model_copy(update={"policy": policy, "workspace": workspace})
    try:
        return start_request(
            asked,
            ask.goal,
            now=datetime.now(UTC),
            open=ask.stay_open,
            id=ask.id,
            labels=ask.labels,
            without_secrets=ask.without_secrets,
            attached=ask.attended,
            sources=sources,
        )
    except ConfigError as error:
        if error.subject != agent.name:
            raise
        raise ConfigError(str(file), error.reason) from error  # a person mends it there


def with_time_to_answer(policy: Policy, approval: ApprovalSettings, *, attended: bool) -> Policy:
    """Return *policy*, which does not say itself how long an approval waits, with that."""
    seconds = approval.attached_seconds if attended else approval.detached_seconds
    return policy.model_copy(update={"approval_seconds": seconds})


async def start(request: StartRequest, options: RunOptions) -> Exit:
    """Record the wish, and drive and show the session, unless it is detached.

    Raises:
        RejectedError: the id is taken.
        ConfigError: it would ask, and nobody can be asked; or its tools would reach the log.
        LogUnavailableError: the log cannot be used; nothing was recorded.
    """
    agent = request.asked.agent
    check_answerable(agent, options.log, attended=options.attended)
    check_log_is_out_of_reach(agent, options.log)
    async with open_client(options.log, must_exist=False) as client:
        await check_id_is_free(client.log, request.id)
        return await carry_on(client, request.stream, options, request.submit)


async def carry_on(
    client: Client, stream: str, options: RunOptions, record: Record, *, show_past: bool = True
) -> Exit:
    """Record what is wished, and drive and show the session, unless it is detached.

    Raises:
        ClusterError: there is no Ray to drive it; nothing was recorded.
        CuelineError: it cannot be driven, or not be read.
    """
    if options.detach:
        session = await record(client)
        assert session.receipt is not None, "what was recorded just now has a receipt"
        return note_detached(options.log, session.receipt, as_json=options.as_json)
    screen = Screen(quiet=options.as_json, plain=options.plain)
    log = client.log.with_settings(options.settings)
    where = RunTarget(log=options.log, on=options.on, address=options.address)
    try:
        watch, rested = await drive(
            log,
            stream,
            where,
            record,
            screen=screen,
            attended=options.attended,
            show_past=show_past,
            facts=_print_fact if options.json_stream else None,
        )
        return report(
            watch,
            screen,
            options.log,
            rested=rested,
            as_json=options.as_json,
            indent=None if options.json_stream else 2,
        )
    except OSError as error:
        if is_of_output(error):
            await _warn_of_open_work(log, stream, options)
        raise


def _print_fact(recorded: RecordedEvent, fact: SessionEvent) -> None:
    typer.echo(json_of(event_document(recorded, fact)))


async def _warn_of_open_work(log: OpenLog, stream: str, options: RunOptions) -> None:
    """Say what became of a session that cannot be shown any more."""
    if (await log.store.head(sibling(stream, "inbox"))).version == NO_STREAM:
        typer.echo("nothing was recorded", err=True)
        return
    id = shown(stream)  # noqa: A001 - the word of the log
    look, way = command(options.log, "show", id), resume_command(options.log, id)
    typer.echo(f"what was recorded stays: `{look}` shows it, `{way}` goes on", err=True)
