"""Counts the sessions and calls of a log, for its metrics."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from cueline.client.open_read_models import Notice, print_notice, read_models
from cueline.events.store import from_us
from cueline.projections.approval import oldest_question_us
from cueline.projections.audit import count_types
from cueline.projections.session import count_statuses
from cueline.runtime.open_log import OpenLog


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTotals:
    """What a log has in all."""

    sessions: Mapping[str, int]
    """The number of sessions by status."""
    events: Mapping[str, int]
    """The number of events of the wanted types; a type without events is missing."""
    asked_at: datetime | None
    """When the oldest question that waits for a person was asked; None: none waits."""


async def totals_of(
    log: OpenLog, types: Collection[str], notice: Notice = print_notice
) -> LogTotals:
    """Return the counts of a log, with the numbers of events of *types*.

    Raises:
        ForbiddenError: the person may not read.
    """
    async with read_models(log, notice) as models:
        oldest = oldest_question_us(models.db)
        return LogTotals(
            sessions=count_statuses(models.db),
            events=count_types(models.db, types),
            asked_at=None if oldest is None else from_us(oldest),
        )
