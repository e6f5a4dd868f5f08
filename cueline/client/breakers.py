"""The circuit breakers of a log: which models and tools are not called for a while."""

from dataclasses import dataclass
from datetime import datetime

from cueline.client.reading import Notice, Page, print_notice, read_models
from cueline.projections import breaker as model
from cueline.wiring import OpenLog


@dataclass(frozen=True, slots=True)
class BreakerRow:
    """One dependency, and whether calls of it go out."""

    id: str
    """As `anthropic.3f9a01c2.claude-opus-4-6`."""
    state: str
    """`closed`, `open`, `half-open`, or `held` where the provider asked for a pause."""
    since: datetime
    until: datetime | None
    """Until when nothing goes out, as far as is known."""
    kind: str
    """Of the last failure."""
    failures: int
    """Counted since it was closed last."""
    openings: int
    """How often it opened in a row."""
    probe: str | None
    """The effect that finds out whether the dependency works again."""


async def list_breakers(log: OpenLog, *, notice: Notice = print_notice) -> Page[BreakerRow]:
    """Return all breakers of the log, those that are not closed first.

    Raises:
        LogUnavailableError: the log cannot be read.
    """
    now = log.clock.now()
    async with read_models(log, notice) as models:
        rows = [
            BreakerRow(
                each.id,
                each.shown_state(now),
                each.since,
                each.until(now),
                each.kind,
                each.failures,
                each.openings,
                each.probe or None,
            )
            for each in model.list_breakers(models.db)
        ]
        return models.page(rows)
