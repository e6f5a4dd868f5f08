"""How long a session, or a child that it waits for, has waited for a person."""

from datetime import datetime
from typing import cast

from cueline.deciders.session import SessionState, evolve, session_of
from cueline.events.codec import Redacted
from cueline.events.journal import Journal
from cueline.events.session import CallDelegated, SessionEvent

Interval = tuple[datetime, datetime]


async def person_seconds(journal: Journal, stream: str, now: datetime) -> float:
    """Return for how many seconds nothing below *stream* could go on without a person.

    Raises what `Journal.read` raises.
    """
    total, end = 0.0, None
    for since, until in sorted(await _person_waits(journal, stream, now)):
        begin = since if end is None else max(since, end)
        total += max((until - begin).total_seconds(), 0.0)
        end = until if end is None else max(end, until)
    return total


async def _person_waits(journal: Journal, stream: str, now: datetime) -> list[Interval]:
    waits: list[Interval] = []
    state, since = session_of(stream), None
    async for recorded, fact in journal.read(stream):
        if isinstance(fact, Redacted):
            continue
        state = evolve(state, cast("SessionEvent", fact))
        waiting = _waits_for_person(state)
        if waiting and since is None:
            since = recorded.recorded_at
        elif not waiting and since is not None:
            waits.append((since, recorded.recorded_at))
            since = None
        if isinstance(fact, CallDelegated):
            waits += await _person_waits(journal, fact.child, now)
    return waits if since is None else [*waits, (since, now)]


def _waits_for_person(state: SessionState) -> bool:
    wait = state.waiting
    return wait is not None and (wait.is_pause or wait.kind == "approval")
