"""How events change the rows of sandboxes and of slots."""

from collections.abc import Mapping
from typing import Final

from cueline.events.journal import Unreadable
from cueline.events.sandbox import (
    SandboxAct,
    SandboxAsked,
    SandboxDone,
    SandboxFailed,
    SlotAsked,
    SlotFreed,
    SlotGranted,
)
from cueline.events.store import RecordedEvent, to_us
from cueline.events.stream import shown
from cueline.projections.read_model import Rows, new_row
from cueline.projections.sandbox import Sandbox, Slot, State

_BEGUN: Final[Mapping[SandboxAct, State]] = {
    "create": "starting",
    "start": "starting",
    "stop": "stopping",
    "delete": "deleting",
}
_DONE: Final[Mapping[SandboxAct, State]] = {
    "create": "started",
    "start": "started",
    "stop": "stopped",
    "delete": "deleted",
}


def fold_sandbox(rows: Rows, recorded: RecordedEvent, fact: object) -> None:
    """Apply one event of a sandbox."""
    row = rows.find(recorded.stream)
    if isinstance(fact, SandboxAsked):
        row = row or rows.add(
            new_row(
                Sandbox,
                stream=recorded.stream,
                id=shown(recorded.stream),
                asked_position=recorded.position,
            )
        )
        row.update(session=fact.session, backend=fact.spec.backend)
        row.update(state=_BEGUN[fact.act], since_us=to_us(fact.at))
    if row is None:
        return
    match fact:
        case SandboxDone(act=act, place=place, at=at):
            # A stop without a place found nothing: the creation had failed.
            state: State = _DONE[act] if place or act == "delete" else "failed"
            row.update(place=place, state=state, since_us=to_us(at))
            if act in {"create", "start"}:
                row["error"] = None
        case SandboxFailed(act=act, at=at):
            row.update(state="gone" if fact.gone else "failed", since_us=to_us(at))
            row["error"] = f"{act} failed: {fact.message}"
        case Unreadable():
            row.update(state="failed", error=str(fact.error))


def fold_slot(rows: Rows, recorded: RecordedEvent, fact: object) -> None:
    """Apply one event of the slots."""
    if not isinstance(fact, SlotAsked | SlotGranted | SlotFreed):
        return
    row = rows.find(fact.session) or rows.add(new_row(Slot, stream=fact.session, state="free"))
    row["events"] += 1
    match fact:
        case SlotAsked(at=at):
            row.update(state="waiting", since_us=to_us(at), asked_position=recorded.position)
        case SlotGranted():
            row["state"] = "held" if row["state"] == "waiting" else row["state"]
        case SlotFreed():
            row["state"] = "free"
    if not isinstance(fact, SlotGranted):
        row.update(slots=fact.slots, slots_position=recorded.position)
