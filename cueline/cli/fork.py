"""`cueline fork`: a new session that shares another's past, and goes on from there."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import (
    ACCEPT,
    DEFAULT_LOG,
    AcceptOption,
    AddressOption,
    DetachOption,
    InlineOption,
    JsonOption,
    LogOption,
    SessionArgument,
    WithoutSecretOption,
)
from cueline.cli.outside import outside_of
from cueline.environment import who
from cueline.errors import ConfigError, CuelineError, UnknownOutcomeError
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.cli.outside import Outside
    from cueline.cli.starting import Wish
    from cueline.events.agent import AgentSpec
    from cueline.events.inbox import ForkPoint
    from cueline.stores.backend import LogBackend

_HELP = """Start a session that shares another's past up to a version, and goes on from there.

Nothing in flight crosses the fork. Its workspace is a copy, made now, in a
folder beside the original; the model is told so. `cueline tail -n 50` shows
the versions.

\b
Examples:
  cueline fork 7f3a --at 12 --goal "Try it without the cache"
  cueline fork 7f3a --at 12 --inline
"""
_NOTE = (
    "This session was forked from another. Its workspace is a copy of that session's "
    "folder, made at the fork from the files as they were then; they may differ from "
    "what was said before."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants to fork."""

    session: str
    at: int
    goal: str | None
    accept_changed_tools: bool


@dataclass(frozen=True, slots=True)
class Past:
    """What a fork goes on from."""

    point: "ForkPoint"
    agent: "AgentSpec"
    open: bool
    """Whether it stays open for more messages."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("fork", help=_HELP, short_help="Go on from another session's past.")(fork)


def fork(
    ctx: typer.Context,
    session: SessionArgument,
    *,
    at: Annotated[
        int, typer.Option(min=1, help="The last version of the shared past.", metavar="VERSION")
    ],
    goal: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is told to do from there.")
    ] = None,
    inline: InlineOption = False,
    detach: DetachOption = False,
    address: AddressOption = None,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The new session's id, instead of a random one."),
    ] = None,
    without_secret: WithoutSecretOption = None,
    accept_changed_tools: AcceptOption = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Fork a session."""
    from cueline.actors.inbox import new_id
    from cueline.cli.starting import wish_of

    id = new_id() if name is None else name  # noqa: A001 - the word of the log
    wish = wish_of(
        ctx,
        log,
        id,
        inline=inline,
        detach=detach,
        address=address,
        as_json=as_json,
        without_secrets=without_secret,
    )
    asked = Asked(session, at, goal, accept_changed_tools)
    raise typer.Exit(opened.run(_fork(asked, wish, outside_of(ctx))))


async def _fork(asked_for: Asked, wish: "Wish", outside: "Outside") -> Exit:
    from cueline.cli.running import command
    from cueline.cli.starting import carry_on, check_channel, refuse_taken
    from cueline.deciders.session.changed_tools import with_tools
    from cueline.events.inbox import StartAsked
    from cueline.events.stream import stream_name
    from cueline.preflight import check_resumed
    from cueline.secret import waiver
    from cueline.wiring import open_log

    past = await _past(wish.log, asked_for.session, asked_for.at)
    way = command(wish.log, "fork", asked_for.session, "--at", str(asked_for.at))
    accept, without = asked_for.accept_changed_tools, wish.without_secrets
    tools = check_resumed(
        past.agent,
        wish.log,
        waived=without,
        accept_changed_tools=accept,
        accept_with=f"{way} {ACCEPT}",
    )
    past = replace(past, agent=with_tools(past.agent, tools))
    waived = waiver(past.agent, wish.without_secrets, who())
    check_channel(past.agent, wish)
    stream = stream_name("session", wish.id)
    async with open_log(wish.log, must_exist=True) as log:
        await refuse_taken(log, stream)

        async def record_it() -> None:
            with copied(past.agent, wish.id, wish.log) as (agent, note):
                asked = StartAsked(
                    agent=_with_time_to_answer(agent, wish, outside),
                    goal=asked_for.goal,
                    open=past.open,
                    attached=wish.attended,
                    fork_of=past.point,
                    note=note,
                    asked_by=who(),
                    asked_at=datetime.now(UTC),
                )
                await log.ask_start(wish.id, asked, by=f"user:{who()}", waived=waived)

        return await carry_on(log, stream, wish, record_it)


def _with_time_to_answer(agent: "AgentSpec", wish: "Wish", outside: "Outside") -> "AgentSpec":
    """Return *agent*, whose questions wait as long as is set here, unless its own file said."""
    from cueline.cli.starting import with_time_to_answer
    from cueline.config.settings import APPROVAL_SECONDS
    from cueline.deciders.policy_fault import faults

    if APPROVAL_SECONDS in agent.limit_sources:
        return agent
    approval = outside.effective().settings.approval
    policy = with_time_to_answer(agent.policy, approval, attended=wish.attended)
    if any(faults(policy)):
        return agent  # a reminder, or the grant that comes by itself, would come too late
    return agent.model_copy(update={"policy": policy})


async def _past(log: LogUrl, name: str, at: int) -> Past:
    """Read the past up to version *at*, each event checked.

    Raises:
        RejectedError: it has no such version.
        CorruptEventError: it was damaged or emptied up to there.
    """
    from cueline.events.inbox import ForkPoint

    history = await opened.history(log, name, until=at)
    if (damage := history.damage or history.followed.emptied) is not None:
        raise damage
    state, (recorded, _) = history.state, history.events[-1]
    assert state.setup is not None, "the first fact of a session says what it is to do"
    point = ForkPoint(stream=history.stream, version=at, hash=recorded.hash.hex())
    # The limits as they were raised by then; nothing of them is spent yet.
    agent = state.agent.model_copy(update={"limits": state.meter.limits})
    return Past(point, agent, open=state.setup.open)


@contextmanager
def copied(agent: "AgentSpec", id: str, log: LogUrl) -> Iterator[tuple["AgentSpec", str | None]]:  # noqa: A002 - the word of the log
    """Give the fork a copy of the workspace, and the note that says so; none if it fails.

    Raises:
        ConfigError: the folder is on another machine, or cannot be copied.
    """
    import shutil

    from cueline.actors.presence import machine_name

    place = agent.workspace
    if place is None:
        yield agent, None
        return
    if place.machine != machine_name():
        raise ConfigError("the workspace", f"{place.path} is on {place.machine}; fork it there")
    copy = Path(f"{place.path}-{id}")
    _copy(Path(place.path), copy, log)
    moved = place.model_copy(update={"path": str(copy)})
    try:
        yield agent.model_copy(update={"workspace": moved}), _NOTE
    except UnknownOutcomeError:
        raise  # perhaps it is recorded, and works there
    except CuelineError:
        shutil.rmtree(copy)
        raise


def _copy(source: Path, copy: Path, log: LogUrl) -> None:
    import shutil

    from cueline.stores.backend import backend_of

    if copy.exists():
        raise ConfigError(
            str(copy), "it is in the way of the workspace's copy; choose another --id"
        )
    try:
        shutil.copytree(source, copy, symlinks=True, ignore=partial(_files_of, backend_of(log)))
    except (OSError, shutil.Error) as error:
        shutil.rmtree(copy, ignore_errors=True)
        why = f"the workspace cannot be copied to {copy}: {error}"
        raise ConfigError(str(source), why) from error


def _files_of(log: "LogBackend", folder: str, names: list[str]) -> list[str]:
    """Return those of *names* in *folder* that are the log, which is nobody's file to work on."""
    return [each for each in names if log.owns(Path(folder, each))]
