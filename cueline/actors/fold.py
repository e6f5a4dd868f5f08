"""A stream as the rules of its category see it."""

from typing import Any, TypeVar, cast

from cueline.deciders.decider import Decider
from cueline.events.codec import not_emptied
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
    """Return *state*, which is *stream* up to *version*, with what came since, and its version.

    Raises what `Journal.read` raises, also of an event that was emptied; the
    caller's state is as it was then.
    """
    async for recorded, fact in journal.read(stream, version):
        state = rules.evolve(state, cast("Any", not_emptied(recorded, fact)))
        version = recorded.version
    return state, version
