"""The read models `events` and `faults`: the audit columns of each event, and the unread events."""

from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection
from typing import Annotated, ClassVar

from cueline.events.store import to_us
from cueline.projections.read_model import Id, Names, Read, matching, select


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One event: its place, its subject, and its actor."""

    TABLE: ClassVar[str] = "events"
    KEY: ClassVar[Names] = ("position",)
    INDEXES: ClassVar[tuple[Names, ...]] = (
        ("session", "position"),
        ("type", "position"),
        ("tool", "position"),
    )

    position: int
    recorded_at: datetime
    stream: str
    version: int
    session: Annotated[Id | None, Read("nullif(session, '')", column="session", kind=str)]
    """The session's id, also for events of its inbox and its approvals."""
    type: str
    tool: Annotated[str | None, Read("nullif(tool, '')", column="tool", kind=str)]
    actor: str


def audit(
    db: Connection,
    *,
    session: str | None = None,
    type: str | None = None,  # noqa: A002 - the field's name in the log
    tool: str | None = None,
    actor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = 1000,
) -> list[AuditRow]:
    """Return the newest matching events before a position, in log order.

    *session* is a stream, and *actor* may lack its `:name`.
    """
    where, values = matching(
        [
            ("session = ?", session),
            ("type = ?", type),
            ("tool = ?", tool),
            ("? IN (actor, substr(actor, 1, instr(actor || ':', ':') - 1))", actor),
            ("recorded_us >= ?", to_us(since) if since else None),
            ("recorded_us <= ?", to_us(until) if until else None),
            ("position < ?", before),
        ]
    )
    return select(db, AuditRow, f"{where} ORDER BY position DESC", values, limit)[::-1]


@dataclass(frozen=True, slots=True)
class Fault:
    """One event of the log that is missing in the read models."""

    TABLE: ClassVar[str] = "faults"
    KEY: ClassVar[Names] = ("position",)
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    position: int
    name: str
    """Its stream, version and type."""
    error: str
    """The error."""


def first_fault(db: Connection) -> Fault | None:
    """Return the fault with the lowest position; None if there is no fault."""
    return next(iter(select(db, Fault, "ORDER BY position", limit=1)), None)
