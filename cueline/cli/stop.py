"""`cueline stop`: end a session, also one that nobody drives."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cueline.cli import opened
from cueline.cli.failure import Exit
from cueline.cli.option import DEFAULT_LOG, JsonOption, LogOption, SessionArgument

if TYPE_CHECKING:
    from cueline.cli.message import Addressed

_HELP = """End a session. Tools get 5 s, are terminated, and killed 5 s later.

The process that drives it is asked to end it. If there is none, this command
ends it: that needs no key, tool, secret or workspace. Calls whose outcome
nobody knows are named. Asking twice is asking once.

\b
Example:
  cueline stop 7f3a --reason "wrong folder"
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stop", help=_HELP, short_help="End a session.")(stop)


def stop(
    session: SessionArgument,
    *,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Recorded, and shown.")
    ] = "Session was manually stopped",
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
) -> None:
    """End it."""
    raise typer.Exit(opened.run(_stop(log, session, reason, as_json=as_json)))


async def _stop(path: Path, name: str, reason: str, *, as_json: bool) -> Exit:
    from cueline.cli.message import addressed, say
    from cueline.cli.running import is_taken_up
    from cueline.events.inbox import StopAsked

    async with addressed(path, name) as to:
        said = _already(to)
        recorded = said is None
        if recorded:
            await say(to, StopAsked(reason=reason))
        driven = to.state.finished or await is_taken_up(to.log, to.stream)
        if not driven:
            await _end(to)
            said = "stopped" if to.state.finished else said
        if as_json:
            typer.echo(json.dumps(_document(to, recorded=recorded, driven=driven)))
        else:
            _print(to, said or "asked to stop")
        return Exit.DONE


def _already(to: "Addressed") -> str | None:
    """Say why there is nothing to record; None when there is."""
    if to.state.finished:
        return f"it has ended already: {to.state.status}"
    return "it was asked to stop before" if to.stopping else None


async def _end(to: "Addressed") -> None:
    """Drive the session to its end, and read what came of it."""
    from cueline.inline import drive_to_end

    await drive_to_end(to.log, to.stream)
    async for _ in to.followed.read():
        pass


def _in_doubt(to: "Addressed") -> list[tuple[str, str]]:
    """Return the effects and tools of the calls whose outcome nobody knows."""
    calls = to.state.turn.calls
    return [(each.effect, each.tool) for each in calls if each.phase == "in_doubt"]


def _document(to: "Addressed", *, recorded: bool, driven: bool) -> dict[str, object]:
    from cueline.events.stream import shown

    return {
        "id": shown(to.stream),
        "message": "StopAsked",
        "recorded": recorded,
        "driven": driven,
        "status": str(to.state.status),
        "in_doubt": [effect for effect, _ in _in_doubt(to)],
    }


def _print(to: "Addressed", said: str) -> None:
    from cueline.console.text import visible
    from cueline.events.stream import shown

    typer.echo(f"{shown(to.stream)}: {said}")
    for effect, tool in _in_doubt(to) if to.state.finished else ():
        typer.echo(visible(f"? {effect} {tool} is in doubt: it may or may not have run"))
