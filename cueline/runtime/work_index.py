"""Finds work for the dispatcher in the read models of a log."""

from collections.abc import AsyncIterator, Collection, Sequence
from datetime import datetime

from cueline.actors.dispatcher import Work
from cueline.actors.runner_registry import ClaimedRun
from cueline.deciders.matching import Offer, Unmet, least_unmet
from cueline.events.session import WaitKind
from cueline.events.store import EventStore
from cueline.projections.session import (
    LAST_PENDING,
    causes,
    claimed_runs,
    due_work,
    oldest_runs,
    pending_work,
    running,
    waiting,
)
from cueline.projections.views import Views

PAGE = 1000
"""Number of sessions with work that are read at a time."""
BATCH = 250
"""Number of events that the read models project before other tasks run."""


class ViewsIndex:
    """Finds work and runs in the read models, after updating these; see `WorkIndex`."""

    def __init__(self, views: Views, store: EventStore) -> None:
        self._views = views
        self._store = store

    async def overdue(self, now: datetime) -> AsyncIterator[Sequence[Work]]:
        await self._views.catch_up(self._store, batch=BATCH)
        rows = due_work(self._views.db, now, after=LAST_PENDING, limit=PAGE)
        while rows:
            yield [Work(row.stream, row.unread > 0) for row in rows]
            rows = due_work(self._views.db, now, after=rows[-1], limit=PAGE)

    async def pending(self, after: str) -> Sequence[Work]:
        await self._views.catch_up(self._store, batch=BATCH)
        rows = pending_work(self._views.db, after=after, limit=PAGE)
        return [Work(row.stream, row.unread > 0) for row in rows]

    async def driven(self) -> Sequence[str]:
        await self._views.catch_up(self._store, batch=BATCH)
        return running(self._views.db)

    async def waiting(
        self, kind: WaitKind, offers: Collection[Offer] | None = None
    ) -> Sequence[str]:
        await self._views.catch_up(self._store, batch=BATCH)
        if offers is None:
            return waiting(self._views.db, kind)
        streams = []
        for cause, _ in causes(self._views.db, kind):
            # A run is tried again when a runner is registered.
            if cause.code != "queued" and not (
                cause.is_unmet and least_unmet(offers, cause.demands)
            ):
                streams += waiting(self._views.db, kind, cause)
        return streams

    async def unmet(self) -> Sequence[Unmet]:
        await self._views.catch_up(self._store, batch=BATCH)
        found = causes(self._views.db, "runner")
        return [Unmet(cause.demands, n) for cause, n in found if cause.is_unmet]

    async def claimed(self) -> Sequence[ClaimedRun]:
        await self._views.catch_up(self._store, batch=BATCH)
        found = claimed_runs(self._views.db)
        return [ClaimedRun(stream, runner, unread > 0) for stream, runner, unread in found]

    async def oldest(self, blueprint: str, limit: int) -> Sequence[str]:
        await self._views.catch_up(self._store, batch=BATCH)
        return oldest_runs(self._views.db, blueprint, limit)

    def close(self) -> None:
        self._views.close()
