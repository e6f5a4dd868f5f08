"""The end of a session's stream, where its last fact alone says how the session stands.

A long session need not be read from its beginning to see that it has ended.
"""

from typing import cast

from cueline.deciders.session import SessionState
from cueline.events.codec import Emptied
from cueline.events.journal import Journal
from cueline.events.session import MessageReceived, MessageRefused, SessionEvent, SessionWaiting
from cueline.events.store import NO_STREAM
from cueline.events.stream import sibling

BUSY = frozenset({"ModelRequested", "ModelStarted", "ModelReplied", "ToolStarted", "ToolReturned"})
"""After one of these, the most frequent ones, something is in hand."""
_RECENT = 64
"""The last message that a session read is looked for among so many events."""

LastFact = SessionEvent | Emptied | None
"""None: it has not begun."""


async def last_fact(journal: Journal, stream: str) -> LastFact:
    """Return the last fact of a session.

    Raises:
        CorruptEventError: it cannot be read; restore.
        UnknownEventTypeError: upgrade cueline.
    """
    last = await _last(journal, stream, 1)
    return last[-1] if last else None


def goes_on(last: LastFact) -> bool:
    """Whether a session whose *last* fact this is goes on by itself, as far as that tells."""
    match last:
        case None:
            return True
        case SessionWaiting(kind=kind, exhausted=exhausted):
            return kind not in ("approval", "operator") and not exhausted
        case Emptied():
            return False
        case _:
            return last.type in BUSY


async def has_read_all(journal: Journal, stream: str) -> bool:
    """Whether a session has read its whole inbox, as far as its last facts tell.

    Raises what `last_fact` raises.
    """
    posted = (await journal.store.head(sibling(stream, "inbox"))).version
    if posted <= SessionState().inbox_seen:
        return True
    read = [
        fact.inbox_version
        for fact in await _last(journal, stream, _RECENT)
        if isinstance(fact, MessageReceived | MessageRefused)
    ]
    return bool(read) and read[-1] >= posted


async def _last(journal: Journal, stream: str, count: int) -> list[SessionEvent | Emptied]:
    head = await journal.store.head(stream)
    past = journal.read(stream, max(head.version - count, NO_STREAM))
    return [cast("SessionEvent | Emptied", fact) async for _, fact in past]
