"""The read models `sandboxes` and `slots`: sandboxes of sessions, and who has or wants a slot."""

from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection
from typing import Annotated, ClassVar, Literal

from cueline.projections.read_model import Id, Names, Read, ask, select

State = Literal[
    "starting", "started", "stopping", "stopped", "deleting", "deleted", "failed", "gone"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRow:
    """A sandbox of a session."""

    TABLE: ClassVar[str] = "sandboxes"

    id: str
    """The session's id, and the number of its sandbox: `7f3a.1`."""
    session: Id
    backend: str
    place: str
    """The back-end's name of the sandbox; empty if it is not known that it was created."""
    state: Annotated[State, Read("sandboxes.state", column="state", kind=str)]
    """The state; `failed`: the last act failed; `gone`: it will never start again."""
    since: datetime
    """The time of its last event."""
    error: str | None = None
    """The last failure, as `start failed: no answer within 300 s`, until a start succeeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox(SandboxRow):
    """A sandbox, with the columns for cueline's own queries."""

    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = (("state",),)

    stream: str
    asked_position: int
    """The position of its first event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWaitRow:
    """A session that waits for a slot."""

    TABLE: ClassVar[str] = "slots"

    session: Annotated[Id, Read("stream")]
    since: datetime
    """The time at which it asked for the slot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot(SlotWaitRow):
    """A session that has ever asked for a slot."""

    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = (("state", "asked_position"),)

    stream: str
    """The session's stream."""
    state: str
    """`waiting`, `held` or `free`."""
    asked_position: int
    """The position at which it last asked."""
    slots: int
    """The number of slots when it last asked for one or gave one back."""
    slots_position: int
    """The position at which it did so."""
    events: int
    """The number of events that it is from."""


def list_sandboxes(db: Connection, *, with_deleted: bool) -> list[SandboxRow]:
    """Return the sandboxes, oldest first; those deleted or gone only *with_deleted*."""
    where = "" if with_deleted else "WHERE state NOT IN ('deleted', 'gone')"
    return select(db, SandboxRow, f"{where} ORDER BY asked_position")


@dataclass(frozen=True, slots=True)
class SlotCounts:
    """How many slots there are, and how the table came about."""

    slots: int | None
    """The number of slots when one was last asked for or freed; None: no session ever asked."""
    used: int
    events: int
    """The number of events that could be read."""


def count_slots(db: Connection) -> SlotCounts:
    """Return the numbers of the pool."""
    last = ask(db, "slots", "SELECT slots FROM slots ORDER BY slots_position DESC LIMIT 1")
    [(used, events)] = ask(
        db,
        "slots",
        "SELECT coalesce(sum(CASE WHEN state = 'held' THEN 1 ELSE 0 END), 0), "
        "coalesce(sum(events), 0) FROM slots",
    )
    return SlotCounts(last[0][0] if last else None, int(used), int(events))


def waiting_for_slots(db: Connection) -> list[SlotWaitRow]:
    """Return the sessions that wait for a slot, the next one first."""
    return select(db, SlotWaitRow, "WHERE state = 'waiting' ORDER BY asked_position")
