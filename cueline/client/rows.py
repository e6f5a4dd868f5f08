"""Returns the rows of tables: sessions, runs, questions, breakers, events."""

from collections.abc import Sequence
from dataclasses import replace

from cueline.actors.session_owner import owners_of, silent_owner
from cueline.errors import ConfigError
from cueline.errors.suggestion import known_instead
from cueline.events.codes import DRIVEN
from cueline.events.stream import session_stream
from cueline.projections.approval import PendingRow, choices
from cueline.projections.audit import AuditRow
from cueline.projections.breaker import BreakerRow
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
