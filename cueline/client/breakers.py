"""The circuit breakers of a log: which models and tools are not called for a while."""

from dataclasses import dataclass
from datetime import datetime

from cueline.projections.breaker import Breaker


@dataclass(frozen=True, slots=True)
class BreakerRow:
    """One dependency, and whether calls of it go out."""

    id: str
    """As `PROVIDER.3f9a01c2.MODEL` or `tool.3f9a01c2.fetch_page`."""
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


def row_of(breaker: Breaker, now: datetime) -> BreakerRow:
    """Return a breaker as it is at *now*."""
    return BreakerRow(
        breaker.id,
        breaker.shown_state(now),
        breaker.since,
        breaker.until(now),
        breaker.kind,
        breaker.failures,
        breaker.openings,
        breaker.probe or None,
    )
