"""Reads the last fact of a session, if that alone shows the session's status.

So a long session that has ended does not have to be replayed.

The index of work reads every new event of the log. A dispatcher of a few
sessions need not ask the index while these wait or are driven.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import NamedTuple, cast

from cueline.deciders.session import SessionState
from cueline.errors import CuelineError
from cueline.events.codec import Redacted
from cueline.events.journal import Journal
from cueline.events.session import (
    MessageReceived,
    MessageRefused,
    SessionCompleted,
    SessionEvent,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
)
from cueline.events.store import NO_STREAM, EventStore
from cueline.events.stream import sibling

BUSY = frozenset({"ModelRequested", "ModelStarted", "ModelReplied", "ToolStarted", "ToolReturned"})
"""Types after which an effect runs; the most frequent ones."""
READS = frozenset({"SessionStarted", "SessionForked", "MessageReceived", "MessageRefused"})
"""Types with the inbox position of the session."""

LastFact = SessionEvent | Redacted | None
"""The last fact; None if the session has not started."""


async def last_fact(journal: Journal, stream: str) -> LastFact:
    """Return the last fact of a session.

    Raises:
        CorruptEventError: the event cannot be read; restore the log.
        UnknownEventTypeError: upgrade cueline.
    """
    last: LastFact = None
    version = (await journal.store.head(stream)).version
    async for _, fact in journal.read(stream, max(version - 1, NO_STREAM)):
        last = cast("SessionEvent | Redacted", fact)
    return last


def can_resume(last: LastFact) -> bool:
    """Whether a session with this *last* fact may continue without a message."""
    match last:
        case None:
            return True
        case SessionWaiting(kind=kind, exhausted=exhausted):
            return kind not in ("approval", "operator") and not exhausted
        case Redacted():
            return False
        case _:
            return last.type in BUSY


async def has_read_all(journal: Journal, stream: str) -> bool:
    """Whether a session has read its whole inbox.

    Raises the errors of `last_fact`.
    """
    posted = (await journal.store.head(sibling(stream, "inbox"))).version
    version = (await journal.store.head(stream)).version
    return posted <= await inbox_seen(journal, stream, version)


async def inbox_seen(journal: Journal, stream: str, until: int) -> int:
    """Return the inbox position of a session at its version *until*.

    Raises the errors of `last_fact`.
    """
    options = SessionState().inbox_seen
    if (await journal.store.head(sibling(stream, "inbox"))).version <= options:
        return options
    version = await last_of(journal.store, stream, READS, until)
    async for _, fact in journal.read(stream, version - 1, version):
        if isinstance(fact, MessageReceived | MessageRefused):
            return fact.inbox_version
    return options


async def last_of(store: EventStore, stream: str, types: Collection[str], until: int) -> int:
    """Return the version of the last event of *types*, up to *until*; 0 without any."""
    async for event in store.read_back(stream, until):
        if event.type in types:
            return event.version
    return NO_STREAM


_FOR_EVER = datetime.max.replace(tzinfo=UTC)


class _Rest(NamedTuple):
    version: int
    posted: int
    """The version of the inbox."""
    until: datetime | None
    """The end of the wait; None if the session does not wait, or if the end is unknown."""


class RestCache:
    """Caches the end of each session's wait, until an event is appended to the session."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, _Rest] = {}
        self._over: set[str] = set()

    async def all(self, streams: Iterable[str], now: datetime) -> bool:
        """Whether each of *streams* waits beyond *now*."""
        inboxes = {s: sibling(s, "inbox") for s in streams if s not in self._over}
        heads = await self._journal.store.heads([*inboxes, *inboxes.values()])
        for stream, inbox in inboxes.items():
            version, posted = heads[stream].version, heads[inbox].version
            known = self._known.get(stream)
            if known is None or known[:2] != (version, posted):
                known = self._known[stream] = _Rest(version, posted, await self._learn(stream))
            if known.until is None or known.until <= now:
                return False
        return True

    async def _learn(self, stream: str) -> datetime | None:
        try:
            last = await last_fact(self._journal, stream)
            if not await has_read_all(self._journal, stream):
                return None
        except CuelineError:
            return None  # the dispatcher gets the error at the activation
        match last:
            case SessionCompleted() | SessionFailed() | SessionStopped():
                self._over.add(stream)
                return _FOR_EVER
            case SessionIdle():
                return _FOR_EVER
            case SessionWaiting(deadline_at=deadline_at):
                return deadline_at or _FOR_EVER
            case _:
                return None
