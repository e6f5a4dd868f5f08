"""Who did what and when, in all streams of a log."""

from dataclasses import dataclass
from datetime import datetime

from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.codec import FACTS
from cueline.events.stream import shown
from cueline.projections.audit import AuditEntry


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One event: where it is, what it is about, who caused it."""

    position: int
    recorded_at: datetime
    stream: str
    version: int
    session: str | None
    """The session's id, also for events of its inbox and its approvals."""
    type: str
    tool: str | None
    actor: str


def row_of(entry: AuditEntry) -> AuditRow:
    """Return an event with its session by id."""
    return AuditRow(
        entry.position,
        entry.recorded_at,
        entry.stream,
        entry.version,
        shown(entry.session) if entry.session else None,
        entry.type,
        entry.tool or None,
        entry.actor,
    )


def check_type(kind: str | None) -> None:
    """Refuse a type that no event has.

    Raises:
        ConfigError: name another; the message lists them.
    """
    if kind is not None and kind not in FACTS:
        known = known_instead(kind, sorted(FACTS), "the types are")
        raise ConfigError("type", f"there is no event {kind!r}{known}")
