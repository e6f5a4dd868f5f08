"""The rows that tables list: sessions, runs, questions, breakers, events, costs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import chain, count
from typing import Any, Literal, get_args

from cueline.actors.session_owner import owners_of, silent_owner
from cueline.client.open_read_models import ReadModels
from cueline.errors import ConfigError, CorruptEventError
from cueline.errors.suggestion import closest, known_instead
from cueline.events.status import DRIVEN
from cueline.events.stream import session_stream, shown
from cueline.projections.approval import PendingRow, choices
from cueline.projections.audit import AuditRow
from cueline.projections.breaker import BreakerRow
from cueline.projections.cost import Spent, spent_with_total
from cueline.projections.session import RunRow, SessionRow
from cueline.runtime.open_log import OpenLog

__all__ = [
    "STATUSES",
    "AuditRow",
    "BreakerRow",
    "PendingRow",
    "RunRow",
    "SessionRow",
    "check_type",
    "choices",
    "with_drivers",
]


STATUSES = (
    "created",
    "running",
    "idle",
    "waiting",
    "paused",
    "stopping",
    "completed",
    "failed",
    "stopped",
)


RUN_STATUSES = ("queued", "claimed", *STATUSES)


def check_status(status: str | None, known: Sequence[str]) -> None:
    """Refuse an unknown status.

    Raises:
        ConfigError: *status* is none of *known*; the message lists these.
    """
    if status is not None and status not in known:
        raise ConfigError("status", f"{status!r} is no status{known_instead(status, known)}")


async def with_drivers(log: OpenLog, sessions: Sequence[SessionRow]) -> list[SessionRow]:
    """Return *sessions* with the processes that run them."""
    now = log.clock.now()
    owed = {each.id: session_stream(each.id) for each in sessions if each.status in DRIVEN}
    owners = await owners_of(log.store, log.board, list(owed.values()), now)
    silent = {
        id_: await silent_owner(log.store, log.board, stream, now)
        for id_, stream in owed.items()
        if stream not in owners
    }
    return [
        replace(each, driven=owed[each.id] in owners, silence=silent.get(each.id))
        if each.id in owed
        else each
        for each in sessions
    ]


def check_type(kind: str | None) -> None:
    """Refuse an unknown type of event.

    Raises:
        ConfigError: there is no such type; the message lists all.
    """
    from cueline.events.codec import FACTS  # noqa: PLC0415 - only this needs all facts

    if kind is not None and kind not in FACTS:
        known = known_instead(kind, sorted(FACTS), "the types are")
        raise ConfigError("type", f"there is no event {kind!r}{known}")


ACTORS = ("user", "agent", "runner", "system")


def check_actor(actor: str | None) -> None:
    """Refuse what is no kind of actor, nor an actor of a kind.

    Raises:
        ConfigError: the message lists the kinds.
    """
    kind, named, _ = (actor or "").partition(":")
    if actor is not None and kind not in ACTORS:
        meant = None if named or closest(kind, ACTORS) else f"user:{actor}"
        known = known_instead(kind, ACTORS, "the kinds are", meant=meant)
        raise ConfigError("actor", f"{kind!r} is no kind of actor{known}")


@dataclass(frozen=True, slots=True)
class SqlRows:
    """The answer to a query of SQL."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool = False
    """Whether there are further rows beyond the limit."""
    damage: CorruptEventError | None = None
    """The unreadable event; the rows have the data before it."""


def different(columns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of *columns*, each other than those before it: `id`, `id_2`."""
    names: list[str] = []
    for name in columns:
        numbered = (f"{name}_{number}" for number in count(2))
        names.append(next(each for each in chain([name], numbered) if each not in names))
    return tuple(names)


GroupBy = Literal["session", "agent", "model", "day", "tree"]
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of each group, highest first, and their total."""

    by: GroupBy
    rows: tuple[Spent, ...]
    total: Spent
    """The total of all rows, also beyond the limit; each session counts once."""
    more_rows: int = 0
    """The number of rows beyond the limit."""
    more_cost: Decimal = Decimal(0)
    damage: CorruptEventError | None = None
    """The unreadable event; the rows have the data before it."""


def day_of(name: str, day: str | date | None) -> str | None:
    """Return a day in the form of the read models.

    Raises:
        ConfigError: there is no such day.
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


def check_by(by: str) -> None:
    """Refuse an unknown group of costs.

    Raises:
        ConfigError: there is no such group; the message lists all.
    """
    if by not in (groups := get_args(GroupBy)):
        raise ConfigError("by", f"{by!r} is no group of costs{known_instead(by, groups)}")


def costs_of(models: ReadModels, by: GroupBy, limit: int, **which: str | None) -> Costs:
    """Return the costs of each group, and their total; see `Reader.costs`."""
    rows, whole = spent_with_total(models.db, by, **which)
    more = sum((row.cost for row in rows[limit:]), Decimal(0))
    return Costs(
        by, tuple(map(_with_id, rows[:limit])), whole, len(rows[limit:]), more, models.damage
    )


def _with_id(row: Spent) -> Spent:
    """Return a row with the id of its session instead of the stream."""
    return replace(row, name=shown(row.name)) if row.name.startswith("session-") else row
