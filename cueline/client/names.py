"""Finds the session that a user names by an id or its beginning."""

from collections.abc import Awaitable, Callable, Sequence

from cueline.client.reading import ReadModels
from cueline.errors import InvalidNameError, UnknownSessionError
from cueline.errors.suggestion import closest
from cueline.events.store import EventStore
from cueline.events.stream import session_stream, shown, sibling
from cueline.projections.row import ask

_WIDTH = 200
_MOST = 8
"""The most ids in an error message."""


def session_ids(models: ReadModels) -> list[str]:
    """Return the ids of all sessions, the last changed first.

    Raises:
        CorruptEventError: the log is damaged, so that sessions may be missing.
    """
    if models.damage is not None:
        raise models.damage
    newest_first = "SELECT stream FROM sessions ORDER BY updated_us DESC"
    return [shown(stream) for (stream,) in ask(models.db, "sessions", newest_first)]


async def find_session(
    store: EventStore, name: str, ids: Callable[[], Awaitable[Sequence[str]]], where: str
) -> str:
    """Return the stream of the session whose id is *name*, or begins with it.

    If several ids of one tree begin with *name*, the topmost session is meant.

    Raises:
        UnknownSessionError: there is none, or more than one; the message lists some.
    """
    try:
        stream = session_stream(name)
        if (await store.head(sibling(stream, "inbox"))).version:
            return stream
    except InvalidNameError:
        pass
    known = await ids()
    found = [each for each in known if each.startswith(name)] if name else []
    if found:
        top = min(found, key=len)
        if all(f"{each}.".startswith(f"{top}.") for each in found):  # the others are below it
            return session_stream(top)
        raise UnknownSessionError(name, f"more than one session begins so: {_some(found)}")
    beginnings = {each[: len(name) + 1]: each for each in reversed(known)}
    near = closest(name, [*known, *beginnings], most=3)
    close = list(dict.fromkeys(beginnings.get(each, each) for each in near))
    meant = f"; did you mean {_some(close)}?" if close else ""
    raise UnknownSessionError(as_typed(name), f"there is no such session in {where}{meant}")


def as_typed(name: str) -> str:
    """Return *name* for a message: on one line, and quoted if it is empty."""
    line = " ".join(name.split())
    if not line:
        return repr(name)
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST} more" if len(ids) > _MOST else ""
    return ", ".join(ids[:_MOST]) + more
