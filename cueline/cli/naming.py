"""Which session, approval or log a user means."""

import os
from typing import TYPE_CHECKING

import typer

from cueline.console.text import one_line
from cueline.errors import CuelineError, InvalidNameError, UnknownSessionError
from cueline.events.log_url import LogUrl
from cueline.events.stream import session_stream, shown, sibling
from cueline.suggestion import closest

if TYPE_CHECKING:
    from cueline.events.store import EventStore

_WIDTH = 200
_MOST = 8
"""So many ids are named in a message, and no more."""


def as_typed(name: str) -> str:
    """Return *name* as a message tells it: an empty one would not be seen."""
    return one_line(name, _WIDTH) if name.strip() else repr(name)


async def find_session(store: "EventStore", log: LogUrl, name: str) -> str:
    """Return the stream of the session that *name* stands for, or begins.

    Raises:
        UnknownSessionError: there is none, or more than one; the message names some.
    """
    try:
        stream = session_stream(name)
        if (await store.head(sibling(stream, "inbox"))).version:
            return stream
    except InvalidNameError:
        pass
    known = await known_sessions(store, log)
    found = [each for each in known if each.startswith(name)] if name else []
    if len(found) == 1:
        return session_stream(found[0])
    if found:
        raise UnknownSessionError(name, f"more than one session begins so: {_some(found)}")
    beginnings = {each[: len(name) + 1]: each for each in reversed(known)}
    near = closest(name, [*known, *beginnings], most=3)
    close = list(dict.fromkeys(beginnings.get(each, each) for each in near))
    meant = f"; did you mean {_some(close)}?" if close else ""
    raise UnknownSessionError(as_typed(name), f"there is no such session in {log}{meant}")


async def known_sessions(store: "EventStore", log: LogUrl) -> list[str]:
    """Return the ids of all sessions, the last changed first."""
    from cueline.cli.opened import views_of
    from cueline.projections.row import ask

    async with views_of(log, store) as views:
        newest_first = "SELECT stream FROM sessions ORDER BY updated_us DESC"
        return [shown(stream) for (stream,) in ask(views.db, "sessions", newest_first)]


def complete_session(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the ids that begin with what was typed, for the shell."""
    from cueline.cli.opened import looking, run

    async def find() -> list[str]:
        async with looking(log := log_of(ctx)) as store:
            return await known_sessions(store, log)

    try:
        return [each for each in run(find()) if each.startswith(incomplete)]
    except CuelineError:
        return []


def log_of(ctx: typer.Context) -> LogUrl:
    """Return the log that a command which is still being typed would use.

    Raises:
        ConfigError: what is set outside of it is wrong.
    """
    from cueline.cli.option import DEFAULT_LOG
    from cueline.cli.outside import read

    set_ = read(ctx.find_root().params.get("config")).log
    named = ctx.params.get("log") or os.environ.get("CUELINE_LOG")
    return LogUrl.of(named or set_ or DEFAULT_LOG)


def _some(ids: list[str]) -> str:
    more = f" and {len(ids) - _MOST} more" if len(ids) > _MOST else ""
    return ", ".join(ids[:_MOST]) + more
