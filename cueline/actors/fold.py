"""Folds a stream by the rules of its category.

Rule 1. A snapshot is folded from the log, never copied from memory, so it holds
nothing that the log has erased.

Rule 2. A snapshot is valid only if its hash is the log's hash at its version. An
invalid one is deleted, and the fold begins at version 0.
"""

from collections import OrderedDict
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import MsgspecError, msgpack

from cueline.actors.rule_failure import folded
from cueline.deciders.decider import Decider
from cueline.deciders.prompt import Prompt
from cueline.deciders.session import SESSION, SessionState, evolve, session_of
from cueline.deciders.session.state_codec import FOLDS, packed, unpacked
from cueline.errors import CuelineError
from cueline.events.codec import not_redacted
from cueline.events.journal import Journal
from cueline.events.session import SessionEvent
from cueline.events.snapshot import (
    NO_SNAPSHOTS,
    Snapshot,
    SnapshotRow,
    prompt_digest,
    sealed,
    unsealed,
)
from cueline.events.store import NO_STREAM


class Folded(NamedTuple):
    """The state and prompt of a session at a version, read from a snapshot."""

    state: SessionState
    prompt: Prompt
    """The prompt, without its messages unless they were requested."""
    version: int
    snapshot: Snapshot


async def newest(journal: Journal, stream: str, until: int | None = None) -> Folded | None:
    """Return the newest valid snapshot of *stream*, at most at version *until*, else None."""
    kept = journal.snapshots
    if kept is NO_SNAPSHOTS:
        return None
    last = (await journal.store.head(stream)).version if until is None else until
    if last <= kept.every:
        return None  # most sessions are short: looking for a snapshot costs as much as the fold
    content = await kept.newest(stream, until)
    if content is None:
        return None
    folded = await _checked(journal, stream, unsealed(content))
    if folded is None:
        await _discard(journal, stream)
    return folded


async def newest_with_messages(
    journal: Journal, stream: str, until: int | None = None
) -> Folded | None:
    """Return the newest valid snapshot with the prompt's messages, else None."""
    folded = await newest(journal, stream, until)
    if folded is None:
        return None
    digest = b""
    try:
        for chunk in await journal.snapshots.chunks(stream, folded.version):
            digest = prompt_digest(digest, chunk)
            folded.prompt.transcript += msgpack.decode(chunk, type=list[bytes])
    except MsgspecError:
        digest = b""
    if digest != folded.snapshot.prompt:
        await _discard(journal, stream)
        return None
    return folded


async def keep(journal: Journal, stream: str) -> None:
    """Write a snapshot of *stream* if enough events came since the last one, ignoring errors."""
    with suppress(Exception):  # also of the rules: a state that they cannot fold gets no snapshot
        await _keep(journal, stream)


async def _keep(journal: Journal, stream: str) -> None:
    last = await newest(journal, stream)
    state, prompt, version = last[:3] if last else (session_of(stream), Prompt(), NO_STREAM)
    since, sources, at_hash = version, {stream}, b""
    async for recorded, fact in journal.read(stream, version):
        event = cast("SessionEvent", not_redacted(recorded, fact))
        state = evolve(state, event)
        prompt.add(event)
        sources.add(recorded.stream)
        version, at_hash = recorded.version, recorded.hash
    if version - since <= journal.snapshots.every:
        return
    chunk = msgpack.encode(prompt.transcript)
    snapshot = Snapshot(
        log_id=journal.store.log_id,
        stream=stream,
        version=version,
        hash=at_hash,
        folds=FOLDS,
        prompt=prompt_digest(last.snapshot.prompt if last else b"", chunk),
        state=packed(state, prompt),
    )
    row = SnapshotRow(version, sealed(snapshot), chunk, since, sources)
    await journal.snapshots.keep(stream, row)


async def _checked(journal: Journal, stream: str, found: Snapshot | None) -> Folded | None:
    if found is None or found.folds != FOLDS:
        return None
    if (found.log_id, found.stream) != (journal.store.log_id, stream):
        return None
    async for recorded in journal.store.read(stream, found.version - 1, found.version):
        if recorded.hash == found.hash and recorded.payload is not None:
            with suppress(ValueError, TypeError, KeyError):
                return Folded(*unpacked(found.state), found.version, found)
    return None


async def _discard(journal: Journal, stream: str) -> None:
    with suppress(CuelineError):
        await journal.snapshots.forget([stream])


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

    A session whose rules raise is paused. Raises the errors of `Journal.read`, also for a
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
    """Caches the states of sessions, so that the next `fold` reads only the new events."""

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
