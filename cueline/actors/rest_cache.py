"""Caches the waits of sessions, by the ends of their streams.

The index of work reads every new event of the log. A dispatcher of a few
sessions need not ask the index while these wait or are driven.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from cueline.actors.stream_end import has_read_all, last_fact
from cueline.errors import CuelineError
from cueline.events.journal import Journal
from cueline.events.session import (
    SessionCompleted,
    SessionFailed,
    SessionIdle,
    SessionStopped,
    SessionWaiting,
)
from cueline.events.stream import sibling

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
            return None  # the dispatcher is told when it is activated
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
