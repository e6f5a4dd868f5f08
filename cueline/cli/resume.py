"""`cueline resume`: take a session over, and really go on with it."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import (
    DEFAULT_LOG,
    AddressOption,
    DetachOption,
    InlineOption,
    JsonOption,
    LogOption,
    SessionArgument,
)
from cueline.cli.terminal import is_attended, who

if TYPE_CHECKING:
    from cueline.deciders.session import SessionState
    from cueline.events.store import Presence

_HELP = """Go on with a session that crashed, was paused, or was interrupted.

It goes on from what is in the log, with the agent as it was recorded, and is
shown live. A session that has ended is refused, and so is one that a living
process drives.

\b
Examples:
  cueline resume 7f3a
  cueline resume 7f3a --inline
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("resume", help=_HELP, short_help="Go on with a session, and watch it.")(resume)


def resume(
    session: SessionArgument,
    *,
    inline: InlineOption = False,
    detach: DetachOption = False,
    address: AddressOption = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """Go on with a session."""
    if inline and detach:
        raise typer.BadParameter("an inline run ends with this command; leave one of them out")
    attended = is_attended() and not detach and not as_json
    work = _resume(
        log,
        session,
        inline=inline,
        detach=detach,
        address=address,
        attended=attended,
        as_json=as_json,
    )
    raise typer.Exit(opened.run(work))


async def _resume(
    path: Path,
    name: str,
    *,
    inline: bool,
    detach: bool,
    address: str | None,
    attended: bool,
    as_json: bool,
) -> Exit:
    from cueline.actors.inbox import post
    from cueline.cli.driving import Where, drive
    from cueline.cli.ending import report
    from cueline.cli.message import addressed
    from cueline.cli.running import note_detached, owner_of
    from cueline.cli.starting import check_recorded
    from cueline.console.screen import Screen
    from cueline.events.inbox import ResumeAsked
    from cueline.events.stream import shown

    async with addressed(path, name) as to:
        owner = await owner_of(to.log.store, to.log.board, to.stream)
        _check(shown(to.stream), to.state, owner)
        check_recorded(to.agent)
        if to.state.waiting is not None and to.state.waiting.kind != "approval":
            await post(to.log.journal(), to.stream, ResumeAsked(), by=f"user:{who()}")
        if detach:
            return note_detached(path, shown(to.stream), as_json=as_json)
        screen = Screen(quiet=as_json)
        where = Where(log=path, inline=inline, address=address)
        watch, rested = await drive(
            to.log, to.stream, where, screen=screen, attended=attended, show_past=False
        )
        return report(watch, screen, path, rested=rested, as_json=as_json)


def _check(id: str, state: "SessionState", owner: "Presence | None") -> None:  # noqa: A002 - the word of the log
    """Refuse what cannot be taken over.

    Raises:
        SessionFinishedError: it has ended; fork it.
        SessionOwnedError: a living process drives it; ask that one.
    """
    from cueline.errors import SessionFinishedError, SessionOwnedError

    if state.finished:
        raise SessionFinishedError(id, f"the session has ended: {state.status}")
    if state.status in ("running", "stopping") and owner is not None:
        raise SessionOwnedError(id, owner.machine, owner.pid)
