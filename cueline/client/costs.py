"""What was spent, summed up by session, agent, model, day or tree of sessions."""

import re
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Literal, get_args

from cueline.client.reading import Notice, print_notice, read_models
from cueline.client.sessions import check_limit
from cueline.errors import ConfigError, CorruptEventError
from cueline.events.stream import shown
from cueline.projections.cost import Spent, spent, total
from cueline.wiring import OpenLog

GroupBy = Literal["session", "agent", "model", "day", "tree"]
LIMIT = 50
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Costs:
    """What was spent by each, the dearest first, and by all together."""

    by: GroupBy
    rows: tuple[Spent, ...]
    total: Spent
    """Of all rows, also of those beyond the limit; each session counts once."""
    more_rows: int = 0
    """The number of rows beyond the limit."""
    more_cost: Decimal = Decimal(0)
    damage: CorruptEventError | None = None
    """The event that cannot be read; the rows tell what is before it."""


async def sum_costs(
    log: OpenLog,
    by: GroupBy = "session",
    *,
    stream: str | None = None,
    since: str | date | None = None,
    until: str | date | None = None,
    limit: int = LIMIT,
    notice: Notice = print_notice,
) -> Costs:
    """Return what was spent.

    Args:
        log: the open log.
        by: what to sum up by; a tree is a session with all that descend from it.
        stream: of the only session that counts.
        since: the first day that counts, in UTC, as `2026-01-31`.
        until: the last day that counts.
        limit: at most so many rows.
        notice: told what the user should know meanwhile.

    Raises:
        ConfigError: *by* is another word, a day is none, or the limit is less than 1.
        LogUnavailableError: the log cannot be read.
    """
    if by not in get_args(GroupBy):
        words = ", ".join(get_args(GroupBy))
        raise ConfigError("by", f"costs are not summed up by {by!r}, but by {words}")
    check_limit(limit)
    first, last = _day("since", since), _day("until", until)
    async with read_models(log, notice) as models:
        rows = spent(models.db, by, stream=stream, since=first, until=last)
        # A session may have used several models, on several days.
        several = by in ("model", "day")
        once = spent(models.db, stream=stream, since=first, until=last) if several else rows
        whole = total(once)
    shown_rows = tuple(replace(row, name=_name(row.name)) for row in rows[:limit])
    beyond = rows[limit:]
    usd = sum((row.cost for row in beyond), Decimal(0))
    return Costs(by, shown_rows, whole, len(beyond), usd, models.damage)


def _day(name: str, day: str | date | None) -> str | None:
    """Return a day as the read models write it.

    Raises:
        ConfigError: the calendar has no such day.
    """
    if day is None:
        return None
    if isinstance(day, date):
        return day.isoformat()[:10]
    try:
        if _DAY.fullmatch(day):
            return date.fromisoformat(day).isoformat()
    except ValueError:
        pass
    raise ConfigError(name, f"{day!r} is no day like 2026-01-31")


def _name(name: str) -> str:
    return shown(name) if name.startswith("session-") else name
