"""Folds a stream by the rules of its category."""

from typing import Any, TypeVar, cast

from cueline.actors.snapshots import newest
from cueline.deciders.decider import Decider
from cueline.deciders.session import SESSION
from cueline.events.codec import not_redacted
from cueline.events.journal import Journal
from cueline.events.store import NO_STREAM

State = TypeVar("State")


async def fold(
    journal: Journal,
    stream: str,
    rules: Decider[Any, State, Any],
    state: State,
    version: int = NO_STREAM,
) -> tuple[State, int]:
    """Apply the events after *version* to *state*; return the new state and version.

    From version 0, the fold of a session begins with its newest snapshot.

    Raises what `Journal.read` raises, also for a redacted event; *state* is unchanged.
    """
    if rules is SESSION and version == NO_STREAM:
        folded = await newest(journal, stream)
        if folded is not None:
            state, version = cast("State", folded.state), folded.version
    async for recorded, fact in journal.read(stream, version):
        state = rules.evolve(state, cast("Any", not_redacted(recorded, fact)))
        version = recorded.version
    return state, version
