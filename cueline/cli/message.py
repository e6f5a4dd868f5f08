"""`cueline send` and `pause`: what is said to a session, through its inbox."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument
from cueline.cli.terminal import text_or_stdin
from cueline.environment import who

if TYPE_CHECKING:
    from cueline.actors.followed import Followed
    from cueline.deciders.session import SessionState
    from cueline.events.agent import AgentSpec
    from cueline.events.codec import Emptied
    from cueline.events.fact import Fact
    from cueline.events.inbox import InboxMessage, Lane
    from cueline.wiring import Log

_SEND = """Say something to a session: it goes to its inbox, and counts even if nothing runs.

A note is told with the next model call. A steer ends what is left of the turn:
calls that have not started are skipped. A followup waits until the session
would otherwise be done.

\b
Examples:
  cueline send 7f3a "The deadline is Friday"
  cueline send 7f3a --steer "Stop editing; only report"
  git diff | cueline send 7f3a --followup -
"""
_PAUSE = """Ask a session to pause: nothing new starts, what is in flight finishes.

Asking twice is asking once. `cueline resume` goes on.

\b
Example:
  cueline pause 7f3a
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("send", help=_SEND, short_help="Say something to a session.")(send)
    app.command("pause", help=_PAUSE, short_help="Ask a session to pause.")(pause)


def send(
    session: SessionArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What to say; `-` reads it from stdin.")
    ],
    *,
    note: Annotated[
        bool, typer.Option("--note", help="With the next model call (default).")
    ] = False,
    steer: Annotated[
        bool, typer.Option("--steer", help="Instead of the rest of the turn.")
    ] = False,
    followup: Annotated[bool, typer.Option("--followup", help="When it would be done.")] = False,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Send a message."""
    from cueline.events.inbox import MessageSent

    asked: tuple[tuple[Lane, bool], ...] = (
        ("note", note),
        ("steer", steer),
        ("followup", followup),
    )
    lanes = [lane for lane, chosen in asked if chosen]
    if len(lanes) > 1:
        raise typer.BadParameter(f"--{lanes[0]} and --{lanes[1]} exclude each other")
    message = MessageSent(lane=lanes[0] if lanes else "note", text=text_or_stdin(text))
    raise typer.Exit(opened.run(tell(log, session, message, as_json=as_json)))


def pause(
    session: SessionArgument, *, log: LogOption = DEFAULT_LOG, as_json: JsonOption = False
) -> None:
    """Ask for a pause."""
    from cueline.events.inbox import PauseAsked

    raise typer.Exit(opened.run(tell(log, session, PauseAsked(), as_json=as_json)))


@dataclass(frozen=True, slots=True)
class Addressed:
    """A session that something is said to."""

    log: "Log"
    followed: "Followed"
    unread: "list[Fact | Emptied]"
    """What is in its inbox, and was not read."""
    agent: "AgentSpec"
    attached: bool
    """Whether it was started at a terminal, where its questions are asked."""

    @property
    def stream(self) -> str:
        """Its stream."""
        return self.followed.stream

    @property
    def state(self) -> "SessionState":
        """What it was when it was last looked at."""
        return self.followed.state

    @property
    def stopping(self) -> bool:
        """Whether it was asked to end."""
        from cueline.deciders.session.unread import will_stop

        return will_stop(self.state, self.unread)

    @property
    def paused(self) -> bool:
        """Whether it is held, or will be as soon as its inbox is read."""
        from cueline.deciders.session.unread import will_be_held

        return will_be_held(self.state, self.unread)


@asynccontextmanager
async def addressed(path: Path, name: str) -> AsyncIterator[Addressed]:
    """Open the log to write, and look up the session that *name* stands for.

    Raises:
        UnknownSessionError: there is none; the message names some that are like it.
        CorruptEventError: something of it was emptied.
    """
    from cueline.actors.family import asked_for
    from cueline.actors.followed import Followed
    from cueline.actors.inbox import unread_of
    from cueline.cli.naming import find_session
    from cueline.cli.reading import journal_of
    from cueline.wiring import open_log

    async with open_log(path, must_exist=True) as log:
        stream = await find_session(log.store, path, name)
        followed = Followed(stream, journal_of(log.store))
        async for _ in followed.read():
            pass
        asked = await asked_for(log.journal(), stream)
        if followed.emptied is not None:
            raise followed.emptied
        begun = followed.state.setup or asked
        unread = [said for _, said in await unread_of(log.journal(), followed.state)]
        yield Addressed(log, followed, unread, begun.agent, begun.attached)


async def tell(path: Path, name: str, message: "InboxMessage", *, as_json: bool) -> Exit:
    """Put *message* into the inbox of a session, and say what becomes of it.

    Raises:
        UnknownSessionError: there is none; the message names some that are like it.
        SessionFinishedError: it has ended.
        RejectedError: it is being stopped, or its limits cannot be raised like that.
    """
    from cueline.actors.inbox import check_heard
    from cueline.cli.running import is_taken_up, way_to_resume, when_it_counts
    from cueline.errors import SessionFinishedError
    from cueline.events.stream import shown

    async with addressed(path, name) as to:
        id = shown(to.stream)  # noqa: A001 - the word of the log
        check_heard(to.state, to.unread, message, to.agent)
        said = _already(to, message)
        if said is None and not await say(to, message):
            why = f"it ended before it could read that: {to.state.status}"
            raise SessionFinishedError(id, why)
        driven = to.state.finished or await is_taken_up(to.log, to.stream)
        note = said or _what_happens(message)
        way = await way_to_resume(path, to.log.store, to.stream)
        later = when_it_counts(way, driven=driven)
        if as_json:
            document = {
                "id": id,
                "message": message.type,
                "recorded": said is None,
                "driven": driven,
            }
            typer.echo(json.dumps(document))
        else:
            typer.echo(f"{id}: {note}{later}")
        return Exit.DONE


async def say(to: Addressed, message: "InboxMessage") -> bool:
    """Put *message* into the session's inbox; whether it counted, or can still.

    Whoever drives a session reads its inbox once more after the end. What came
    later is read by nobody, and is seen here.
    """
    from cueline.events.session import MessageReceived

    at = await to.log.post(to.stream, message, to.agent, by=f"user:{who()}")
    received = False
    async for _, fact in to.followed.read():
        if isinstance(fact, MessageReceived) and fact.inbox_version == at.versions[0]:
            received = True
    return received or not to.state.finished


def _already(to: Addressed, message: "InboxMessage") -> str | None:
    """Say why there is nothing to record; None when there is."""
    from cueline.deciders.session import DRIVEN
    from cueline.event_text import cause_text
    from cueline.events.inbox import PauseAsked

    if isinstance(message, PauseAsked) and to.paused:
        if to.state.hold is None:
            return "it was asked to pause before"
        if to.state.status in DRIVEN:
            return "it was asked to pause before; what is in flight finishes first"
        return f"it is paused already: {cause_text(to.state.hold.cause)}"
    return None


def _what_happens(message: "InboxMessage") -> str:
    from cueline.events.inbox import MessageSent

    if isinstance(message, MessageSent):
        return f"sent as a {message.lane}"
    if message.type == "RaiseAsked":
        return "asked for more"
    return "asked to pause"
