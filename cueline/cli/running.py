"""Who takes up a session, and the commands by which a person has it go on."""

import json
from shlex import quote
from typing import TYPE_CHECKING

import typer

from cueline.cli.failure import Exit
from cueline.cli.option import naming
from cueline.events.log_url import LogUrl

if TYPE_CHECKING:
    from cueline.events.store import EventStore
    from cueline.wiring import Log


async def is_taken_up(log: "Log", stream: str) -> bool:
    """Whether somebody reads the session's inbox now."""
    from cueline.actors.owner import owner_of

    if await owner_of(log.store, log.board, stream, log.clock.now()) is not None:
        return True
    return is_up(log.url)


def is_up(path: LogUrl) -> bool:
    """Whether a `cueline up` takes the sessions of the log at *path*."""
    from cueline.up_record import find_up

    return find_up(path) is not None


def other_version(path: LogUrl) -> str | None:
    """Say that the `cueline up` of the log at *path* is another cueline than this, if it is."""
    from importlib.metadata import version

    from cueline.up_record import find_up

    running, ours = find_up(path), version("cueline")
    if running is None or running.version == ours:
        return None
    return (
        f"warning: the `cueline up` of this log is cueline {running.version}, and this is {ours}: "
        f"what this records it may not know; `{command(path, 'down')}`, then start it again"
    )


def command(log: LogUrl, *words: str) -> str:
    """Return a command on this log, to be typed or pasted."""
    return " ".join(quote(word) for word in ("cueline", *words)) + naming(log)


def resuming(log: LogUrl, id: str, *, inline: bool = False) -> str:  # noqa: A002 - the word of the log
    """Return the command that goes on with a session; *inline* where it was driven so before."""
    return command(log, "resume", id, *(["--inline"] if inline else []))


async def way_to_resume(log: LogUrl, store: "EventStore", stream: str) -> str:
    """Return the command that goes on with a session as it was last driven."""
    from cueline.events.stream import shown

    # Whoever drove it inline has no Ray running, and may have none at all.
    inline = ((await store.head(stream)).owner or "").startswith("inline-")
    return resuming(log, shown(stream), inline=inline)


def when_it_counts(way: str, *, driven: bool) -> str:
    """Return what to add to the news that something was put into a session's inbox."""
    if driven:
        return ""
    return f"; nothing drives it now, it counts when it is next driven: `{way}`"


async def note_detached(log: "Log", stream: str, *, as_json: bool) -> Exit:
    """Print the id of a session of which something was recorded, and say who takes it up."""
    from cueline.actors.fold import fold
    from cueline.deciders.session import SESSION, session_of
    from cueline.events.stream import shown

    id = shown(stream)  # noqa: A001 - the word of the log
    if (warning := other_version(log.url)) is not None:
        typer.echo(warning, err=True)
    if as_json:
        state, _ = await fold(log.journal(), stream, SESSION, session_of(stream))
        document = {"id": id, "status": str(state.status), "up": is_up(log.url)}
        typer.echo(json.dumps(document))
        return Exit.DONE
    typer.echo(id)
    if not await is_taken_up(log, stream):
        up_command = command(log.url, "up")
        typer.echo(f"it is recorded; nothing runs that would take it up: `{up_command}`", err=True)
    return Exit.DONE
