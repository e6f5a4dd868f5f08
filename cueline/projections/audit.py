"""The read model `events`: the audit columns of every event in the log."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from sqlite_utils import Database

from cueline.events.store import from_us, to_us
from cueline.projections.row import Names, matching, select


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One event: its place, actor and subject."""

    TABLE: ClassVar[str] = "events"
    KEY: ClassVar[Names] = ("position",)
    INDEXES: ClassVar[tuple[Names, ...]] = (
        ("session", "position"),
        ("type", "position"),
        ("tool", "position"),
    )

    position: int
    stream: str
    version: int
    type: str
    actor: str
    tool: str
    session: str
    """The session's stream, also for events of its inbox and its approvals."""
    recorded_us: int

    @property
    def recorded_at(self) -> datetime:
        """When the log recorded it."""
        return from_us(self.recorded_us)


def audit(
    db: Database,
    *,
    session: str | None = None,
    type: str | None = None,  # noqa: A002 - the field's name in the log
    tool: str | None = None,
    actor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 1000,
) -> list[AuditEntry]:
    """Return the newest matching events, in log order.

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
        ]
    )
    return select(db, AuditEntry, f"{where} ORDER BY position DESC", values, limit)[::-1]
