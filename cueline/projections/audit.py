"""The read models `events` and `faults`: the audit columns of each event, and the unread events."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from sqlite3 import Connection
from typing import Annotated, ClassVar

from cueline.events.store import to_us
from cueline.projections.read_model import LARGEST, Id, Names, Read, ask, matching, select
from cueline.projections.words import JOIN, MATCH, query_of

# The index says at once if there is none: then no event is looked at.
_OF_KIND = """substr(actor, 1, instr(actor || ':', ':') - 1) = ?
    AND EXISTS (SELECT 1 FROM events WHERE actor >= ? AND actor < ?)"""
# Times never decrease from one position to the next, and an index finds the first one.
_FIRST = f"""coalesce(
    (SELECT position FROM events WHERE recorded_us >= ? ORDER BY recorded_us, position LIMIT 1),
    {LARGEST})"""  # noqa: S608 - constants only


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """One event: its place, its subject, and its actor."""

    TABLE: ClassVar[str] = "events"
    KEY: ClassVar[Names] = ("position",)
    INDEXES: ClassVar[tuple[Names, ...]] = (
        ("session", "position"),
        ("type", "position"),
        ("tool", "position"),
        ("actor", "position"),
        ("correlation_id", "position"),
        ("recorded_us",),
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
    correlation_id: str | None
    """The id of the topmost session of its tree; None: of no session."""


def audit(
    db: Connection,
    *,
    session: str | None = None,
    type: str | None = None,  # noqa: A002 - the field's name in the log
    tool: str | None = None,
    actor: str | None = None,
    correlation: str | None = None,
    text: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    after: int | None = None,
    limit: int = 1000,
) -> list[AuditRow]:
    """Return the newest matching events before a position, or the first after one, in log order.

    *session* is a stream, *actor* may lack its `:name`, and *text* is as in `query_of`.
    """
    named = actor is not None and ":" in actor
    kind = None if actor is None or named else (actor, actor, f"{actor};")
    # FTS5 yields the events of words in this order, and needs not find all for a page.
    place = "position" if text is None else "words.rowid"
    where, values = matching(
        [
            ("session = ?", session),
            ("type = ?", type),
            ("tool = ?", tool),
            ("actor = ?", actor if named else None),
            (_OF_KIND, kind),
            ("correlation_id = ?", correlation),
            (f"{place} >= {_FIRST}", to_us(since) if since else None),
            (f"{place} < {_FIRST}", to_us(until) + 1 if until else None),
            (f"{place} < ?", before),
            (f"{place} > ?", after),
            (MATCH, query_of(text) if text is not None else None),
        ]
    )
    if text is not None:
        where = f"{JOIN} {where}"
    if after is not None:
        return select(db, AuditRow, f"{where} ORDER BY {place}", values, limit)
    return select(db, AuditRow, f"{where} ORDER BY {place} DESC", values, limit)[::-1]


def count_types(db: Connection, types: Collection[str]) -> dict[str, int]:
    """Return the number of events of each of *types* that has any."""
    marks = ", ".join("?" * len(types))
    sql = f"SELECT type, count(*) FROM events WHERE type IN ({marks}) GROUP BY type"  # noqa: S608 - only marks
    return dict(ask(db, "events", sql, [*types]))


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
