"""Computes how long a session, or a child that it waits for, waits for a person."""

from datetime import datetime
from typing import cast

from cueline.actors.fold import fold
from cueline.actors.rule_failure import folded
from cueline.actors.stream_end import BUSY, last_fact
from cueline.deciders.session import SESSION, SessionState, rests, session_of
from cueline.deciders.session.children import awaited
from cueline.events.codec import Redacted
from cueline.events.journal import Journal
from cueline.events.session import CallDelegated, SessionEvent
from cueline.events.stream import sibling

Interval = tuple[datetime, datetime]


async def children_at_rest(
    journal: Journal, state: SessionState, now: datetime
) -> tuple[list[SessionState], bool]:
    """Return the descendants that wait for a person, and whether all other ones wait for these.

    Raises the errors of `Journal.read`.
    """
    found: list[SessionState] = []
    everyone = True
    for child in awaited(state):
        last = await last_fact(journal, child.stream)
        if last is None or last.type in BUSY:  # the child works, so its past need not be read
            everyone = False
            continue
        below, _ = await fold(journal, child.stream, SESSION, session_of(child.stream))
        inbox = await journal.store.head(sibling(child.stream, "inbox"))
        if below.finished or inbox.version > below.inbox_seen:
            everyone = False
        elif below.waiting is not None and below.waiting.kind == "child":
            resting, all_of_it = await children_at_rest(journal, below, now)
            found += resting
            everyone = everyone and all_of_it
        elif rests(below, now):
            found.append(below)
        else:
            everyone = False
    return found, everyone and bool(found)


async def person_seconds(journal: Journal, stream: str, now: datetime) -> float:
    """Return for how many seconds *stream*, or a session below it, waited for a person.

    Waits at the same time count once.
    Raises the errors of `Journal.read`.
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
        state = folded(state, cast("SessionEvent", fact))
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
