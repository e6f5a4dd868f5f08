"""Starts a session: everything is checked before anything is recorded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import typer

from cueline.actors.slot import Slots
from cueline.agent import SHARED, Agent, read_agent
from cueline.cli.driving import Record, Where, drive
from cueline.cli.ending import report
from cueline.cli.failure import Exit, is_of_output
from cueline.cli.option import is_typed
from cueline.cli.outside import Outside, outside_of
from cueline.cli.running import command, note_detached, resuming
from cueline.cli.terminal import is_attended
from cueline.client.export import event_document
from cueline.config.layer import Flags, from_flags
from cueline.config.settings import APPROVAL_SECONDS, Approval
from cueline.console.screen import Screen
from cueline.console.text import json_of
from cueline.deciders.policy import asked_about
from cueline.environment import who
from cueline.errors import ConfigError, RejectedError
from cueline.events.agent import AgentSpec, Policy
from cueline.events.inbox import StartAsked
from cueline.events.log_url import LogUrl
from cueline.events.session import SessionEvent
from cueline.events.store import NO_STREAM, RecordedEvent
from cueline.events.stream import shown, sibling, stream_name
from cueline.preflight import check_log_is_out_of_reach, recorded
from cueline.secret import waiver
from cueline.stores.backend import backend_of
from cueline.wiring import Log, open_log


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Where a session is to be recorded and driven, and who watches."""

    log: LogUrl
    id: str
    inline: bool
    detach: bool
    address: str | None
    attended: bool
    as_json: bool
    json_stream: bool
    """Whether each fact is printed as it comes, and at last the result, one a line."""
    plain: bool
    grace_seconds: float
    slots: Slots
    without_secrets: tuple[str, ...]
    """Which need not be known here."""


def wish_of(
    ctx: typer.Context,
    log: LogUrl,
    id: str,  # noqa: A002 - the word of the log
    *,
    inline: bool,
    detach: bool,
    address: str | None,
    as_json: bool,
    json_stream: bool = False,
    plain: bool = False,
    without_secrets: Sequence[str] | None,
) -> Wish:
    """Return what the options say that all have which drive a session.

    Raises:
        BadParameter: two of them exclude each other.
    """
    if inline and detach:
        raise typer.BadParameter("an inline run ends with this command; leave one of them out")
    if not inline:
        backend_of(log).check(shared=True)
    # RAY_ADDRESS may be there for other commands.
    if (inline or detach) and is_typed(ctx, "address"):
        mode = "--inline" if inline else "--detach"
        raise typer.BadParameter(f"--address names a Ray that {mode} does not use; leave one out")
    return Wish(
        log=log,
        id=id,
        inline=inline,
        detach=detach,
        address=address,
        attended=is_attended() and not (detach or as_json or json_stream),
        as_json=as_json or json_stream,
        json_stream=json_stream,
        plain=plain,
        grace_seconds=outside_of(ctx).effective().settings.grace_seconds,
        slots=outside_of(ctx).slots(),
        without_secrets=tuple(without_secrets or ()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
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


def prepared(file: Path, ask: Ask, outside: Outside) -> StartAsked:
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
    spec = _checked(file, asked, ask.without_secrets)
    return StartAsked(
        agent=spec.model_copy(update={"limit_sources": sources}),
        goal=ask.goal,
        open=ask.stay_open,
        attached=ask.attended,
        labels=ask.labels,
        asked_by=who(),
        asked_at=datetime.now(UTC),
    )


def _checked(file: Path, agent: Agent, waived: Sequence[str]) -> AgentSpec:
    """Return the *agent* of a file as it will be recorded.

    Raises:
        ConfigError: mend the file, or what else it names.
        ToolImportError: make the tool importable.
    """
    try:
        spec = recorded(agent, waived=waived)
    except ConfigError as error:
        if error.subject != agent.name:
            raise
        raise ConfigError(str(file), error.reason) from error  # a person mends it there
    return spec


def with_time_to_answer(policy: Policy, approval: Approval, *, attended: bool) -> Policy:
    """Return *policy*, which does not say itself how long an approval waits, with that."""
    seconds = approval.attached_seconds if attended else approval.detached_seconds
    return policy.model_copy(update={"approval_seconds": seconds})


def check_channel(agent: AgentSpec, wish: Wish) -> None:
    """Refuse an agent that would ask where nobody can be asked (D36).

    Raises:
        ConfigError: the message says how somebody could be.
    """
    told = any(hook.on != "notify" for hook in agent.policy.hooks)
    if wish.attended or wish.detach or told:
        return
    if tools := asked_about(agent):
        raise ConfigError(
            agent.name,
            f"it asks before it calls {', '.join(tools)}, and nobody can be asked here; "
            "run it in a terminal, or with --detach and answer with `cueline approve`, "
            "or name a hook in its [policy] that tells of questions, "
            "or start it with --auto-approve",
        )


async def start(asked: StartAsked, wish: Wish) -> Exit:
    """Record the wish, and drive and show the session, unless it is detached.

    Raises:
        RejectedError: the id is taken, or has a form that ids do not have.
        ConfigError: it would ask, and nobody can be asked; or its tools would reach the log.
        LogUnavailableError: the log cannot be used; nothing was recorded.
    """
    stream = stream_name("session", wish.id)
    check_channel(asked.agent, wish)
    check_log_is_out_of_reach(asked.agent, wish.log)
    waived = waiver(asked.agent, wish.without_secrets, who())
    async with open_log(wish.log) as log:
        await refuse_taken(log, stream)

        async def record_it() -> None:
            await log.ask_start(wish.id, asked, by=f"user:{who()}", waived=waived)

        return await carry_on(log, stream, wish, record_it)


async def carry_on(
    log: Log, stream: str, wish: Wish, record: Record, *, show_past: bool = True
) -> Exit:
    """Record what is wished, and drive and show the session, unless it is detached.

    Raises:
        ClusterError: there is no Ray to drive it; nothing was recorded.
        CuelineError: it cannot be driven, or not be read.
    """
    if wish.detach:
        await record()
        return await note_detached(log, stream, as_json=wish.as_json)
    screen = Screen(quiet=wish.as_json, plain=wish.plain)
    log = replace(log, grace_seconds=wish.grace_seconds, slots=wish.slots)
    where = Where(log=wish.log, inline=wish.inline, address=wish.address)
    try:
        watch, rested = await drive(
            log,
            stream,
            where,
            record,
            screen=screen,
            attended=wish.attended,
            show_past=show_past,
            facts=_print_fact if wish.json_stream else None,
        )
        return report(
            watch,
            screen,
            wish.log,
            rested=rested,
            as_json=wish.as_json,
            indent=None if wish.json_stream else 2,
            inline=wish.inline,
        )
    except OSError as error:
        if is_of_output(error):
            await _tell_what_stays(log, stream, wish)
        raise


def _print_fact(recorded: RecordedEvent, fact: SessionEvent) -> None:
    typer.echo(json_of(event_document(recorded, fact)))


async def _tell_what_stays(log: Log, stream: str, wish: Wish) -> None:
    """Say what became of a session that cannot be shown any more."""
    if (await log.store.head(sibling(stream, "inbox"))).version == NO_STREAM:
        typer.echo("nothing was recorded", err=True)
        return
    id = shown(stream)  # noqa: A001 - the word of the log
    look, way = command(wish.log, "show", id), resuming(wish.log, id, inline=wish.inline)
    typer.echo(f"what was recorded stays: `{look}` shows it, `{way}` goes on", err=True)


async def refuse_taken(log: Log, stream: str) -> None:
    """Refuse an id that a session has, before anything is set up for it.

    Raises:
        RejectedError: choose another.
    """
    if (await log.store.head(sibling(stream, "inbox"))).version != NO_STREAM:
        raise RejectedError(shown(stream), "there is a session of this id")
