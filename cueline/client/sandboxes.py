"""Returns the sandboxes of a log, as the log knows them; no back-end is asked."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Final, Literal, cast

from cueline.actors.sandbox_life import sandbox_of
from cueline.actors.sandbox_slots import SLOTS_STREAM
from cueline.deciders.sandbox import SLOTS
from cueline.events.codec import not_redacted
from cueline.events.journal import Journal
from cueline.events.sandbox import (
    SandboxAct,
    SandboxAsked,
    SandboxDone,
    SandboxEvent,
    SandboxFailed,
    SlotAsked,
    SlotEvent,
    SlotFreed,
)
from cueline.events.stream import shown
from cueline.runtime.open_log import OpenLog

State = Literal[
    "starting", "started", "stopping", "stopped", "deleting", "deleted", "failed", "gone"
]
_BEGUN: Final[dict[SandboxAct, State]] = {
    "create": "starting",
    "start": "starting",
    "stop": "stopping",
    "delete": "deleting",
}
_DONE: Final[dict[SandboxAct, State]] = {
    "create": "started",
    "start": "started",
    "stop": "stopped",
    "delete": "deleted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRow:
    """A sandbox of a session."""

    id: str
    """The session's id, and the number of its sandbox: `7f3a.1`."""
    session: str
    backend: str
    place: str
    """The back-end's name of the sandbox; empty if it is not known that it was created."""
    state: State
    """The state; `failed`: the last act failed; `gone`: it will never start again."""
    since: datetime
    """The time of its last event."""
    error: str | None = None
    """The last failure, as `start failed: no answer within 300 s`, until a start succeeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWaitRow:
    """A session that waits for a slot."""

    session: str
    since: datetime
    """The time at which it asked for the slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """The sandboxes of a log, and the slots that limit how many are started."""

    max_started: int | None
    """The number of slots when one was last asked for or freed; None: no session ever asked."""
    used: int
    """The number of sessions that have a slot."""
    sandboxes: tuple[SandboxRow, ...]
    queue: tuple[SlotWaitRow, ...]
    """The sessions that wait for a slot, the next one first."""


async def pool_of(log: OpenLog, *, with_deleted: bool) -> PoolStatus:
    """Return the sandboxes of a log; those that are deleted or gone only *with_deleted*.

    Raises:
        CorruptEventError: the log is damaged.
    """
    log.check_whole()
    log.check_may("read")
    journal, slots, most = log.journal(), SLOTS.initial_state, None
    sessions: dict[str, None] = {}
    async for recorded, fact in journal.read(SLOTS_STREAM):
        event = cast("SlotEvent", not_redacted(recorded, fact))
        slots = SLOTS.evolve(slots, event)
        sessions[event.session] = None
        if isinstance(event, SlotAsked | SlotFreed):
            most = event.slots
    rows = [row for session in sessions async for row in _rows_of(journal, session)]
    return PoolStatus(
        max_started=most,
        used=len(slots.held),
        sandboxes=tuple(e for e in rows if with_deleted or e.state not in {"deleted", "gone"}),
        queue=tuple(SlotWaitRow(session=shown(e.session), since=e.at) for e in slots.queue),
    )


async def _rows_of(journal: Journal, session: str) -> AsyncIterator[SandboxRow]:
    for number in count(1):
        name, row = sandbox_of(session, number), None
        async for recorded, fact in journal.read(name):
            row = _after(row, name, cast("SandboxEvent", not_redacted(recorded, fact)))
        if row is None:
            return
        yield row


def _after(row: SandboxRow | None, name: str, event: SandboxEvent) -> SandboxRow:
    if isinstance(event, SandboxAsked):
        return SandboxRow(
            id=shown(name),
            session=shown(event.session),
            backend=event.spec.backend,
            place=row.place if row else "",
            state=_BEGUN[event.act],
            since=event.at,
            error=row.error if row else None,
        )
    assert row is not None, "the intent comes first"
    match event:
        case SandboxDone():
            started = event.act in {"create", "start"}
            # A stop without a place found nothing: the creation had failed.
            known = event.place or event.act == "delete"
            return replace(
                row,
                place=event.place,
                state=_DONE[event.act] if known else "failed",
                since=event.at,
                error=None if started else row.error,
            )
        case SandboxFailed():
            error = f"{event.act} failed: {event.message}"
            over: State = "gone" if event.gone else "failed"
            return replace(row, state=over, since=event.at, error=error)
