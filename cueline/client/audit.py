"""Who did what and when, in all streams of a log."""

from dataclasses import dataclass
from datetime import datetime

from cueline.client.reading import Notice, Page, print_notice, read_models
from cueline.client.sessions import check_limit
from cueline.errors import ConfigError
from cueline.events.codec import FACTS
from cueline.events.stream import shown
from cueline.projections.audit import audit
from cueline.suggestion import known_instead
from cueline.wiring import OpenLog

LIMIT = 1000


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


async def list_events(
    log: OpenLog,
    *,
    stream: str | None = None,
    type: str | None = None,  # noqa: A002 - the word of the log
    tool: str | None = None,
    actor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = LIMIT,
    notice: Notice = print_notice,
) -> Page[AuditRow]:
    """Return the newest events that fit, in the order of the log.

    Args:
        log: the open log.
        stream: of the session that they concern.
        type: of the event.
        tool: that they are about.
        actor: `user`, `agent`, `runner` or `system`, or one of them, as `user:ada`.
        since: recorded then, or later.
        until: recorded then, or before.
        limit: at most so many.
        notice: told what the user should know meanwhile.

    Raises:
        ConfigError: no event has this type: an empty list would say that it never happened.
        LogUnavailableError: the log cannot be read.
    """
    check_type(type)
    check_limit(limit)
    async with read_models(log, notice) as models:
        newest = audit(
            models.db,
            session=stream,
            type=type,
            tool=tool,
            actor=actor,
            since=since,
            until=until,
            limit=limit + 1,
        )
    rows = [
        AuditRow(
            each.position,
            each.recorded_at,
            each.stream,
            each.version,
            shown(each.session) if each.session else None,
            each.type,
            each.tool or None,
            each.actor,
        )
        for each in newest[-limit:]
    ]
    return Page(tuple(rows), len(newest) > limit, models.damage)


def check_type(kind: str | None) -> None:
    """Refuse a type that no event has.

    Raises:
        ConfigError: name another; the message lists them.
    """
    if kind is not None and kind not in FACTS:
        known = known_instead(kind, sorted(FACTS), "the types are")
        raise ConfigError("type", f"there is no event {kind!r}{known}")
