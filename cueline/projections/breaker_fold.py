"""How events change the row of a circuit breaker."""

from cueline.events.breaker import (
    BreakerClosed,
    BreakerHalfOpened,
    BreakerHeld,
    BreakerOpened,
    FailureCounted,
)
from cueline.events.store import to_us
from cueline.projections.read_model import Row


def fold_breaker(row: Row, fact: object) -> None:
    """Apply one event of a breaker."""
    match fact:
        case FailureCounted(at=at, kind=kind):
            row["since_us"] = row["since_us"] or to_us(at)
            row["kind"] = kind
            row["failures"] += 1
        case BreakerOpened(at=at, until=until, kind=kind, openings=openings):
            row.update(state="open", since_us=to_us(at), until_us=to_us(until), kind=kind)
            row.update(openings=openings, probe="")
        case BreakerHeld(at=at, until=until, kind=kind):
            row["since_us"] = row["since_us"] or to_us(at)
            row.update(held_until_us=to_us(until), kind=kind)
        case BreakerHalfOpened(at=at, until=until, probe=probe):
            row.update(state="half_open", since_us=to_us(at), until_us=to_us(until), probe=probe)
        case BreakerClosed(at=at, by=by):
            row.update(state="closed", since_us=to_us(at), until_us=None, probe="")
            row.update(failures=0, openings=0)
            if by:
                row["held_until_us"] = None
        case _:
            pass
