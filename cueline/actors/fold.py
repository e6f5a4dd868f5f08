"""Folds a stream by the rules of its category."""

from collections import OrderedDict
from typing import Any, TypeVar, cast

from cueline.actors.rule_failure import folded
from cueline.actors.snapshots import newest
from cueline.deciders.decider import Decider
from cueline.deciders.session import SESSION, SessionState, session_of
from cueline.events.codec import not_redacted
from cueline.events.journal import Journal
from cueline.events.store import NO_STREAM

State = TypeVar("State")
CACHED = 100
"""Number of sessions in a `SessionCache`; the least recently used goes first."""


async def fold(
    journal: Journal,
    stream: str,
    rules: Decider[Any, State, Any],
    state: State,
    version: int = NO_STREAM,
) -> tuple[State, int]:
    """Apply the events after *version* to *state*; return the new state and version.

    From version 0, the fold of a session begins with its newest snapshot.

    A session whose rules raise is paused. Raises what `Journal.read` raises, also for a
    redacted event; *state* is unchanged.
    """
    if rules is SESSION and version == NO_STREAM:
        kept = await newest(journal, stream)
        if kept is not None:
            state, version = cast("State", kept.state), kept.version
    evolve = cast("Any", folded if rules is SESSION else rules.evolve)
    async for recorded, fact in journal.read(stream, version):
        state = evolve(state, not_redacted(recorded, fact))
        version = recorded.version
    return state, version


class SessionCache:
    """Caches the states of sessions; the next `fold` reads only the events after that."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        """The log of the sessions."""
        self._folded: OrderedDict[str, tuple[SessionState, int]] = OrderedDict()

    async def fold(self, stream: str) -> tuple[SessionState, int]:
        """Return a session's state and version; raises as `fold` does."""
        known = self._folded.get(stream, (session_of(stream), NO_STREAM))
        found = self._folded[stream] = await fold(self.journal, stream, SESSION, *known)
        self._folded.move_to_end(stream)
        if len(self._folded) > CACHED:
            self._folded.popitem(last=False)
        return found
