"""The read model `breakers`: the circuit breakers of models, accounts and tools."""

from dataclasses import dataclass, fields
from datetime import datetime
from sqlite3 import Connection
from typing import Annotated, ClassVar

from cueline.projections.read_model import Names, Read, select


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRow:
    """One dependency, and whether its calls are sent."""

    id: str
    """The name: `PROVIDER.3f9a01c2.MODEL` or `tool.3f9a01c2.fetch_page`."""
    state: str = "closed"
    """`closed`, `open`, `half-open`, or `held` if the provider asked for a pause."""
    since: datetime
    """When the state began, or the first failure was counted."""
    until: datetime | None
    """The time until which no call is sent."""
    kind: str
    """The code of the last failure."""
    failures: int
    """The failures since the breaker was last closed."""
    openings: int
    """The number of consecutive openings."""
    probe: Annotated[str | None, Read("nullif(probe, '')", column="probe", kind=str)]
    """The effect that is the probe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker(BreakerRow):
    """The folded state of a breaker.

    If the breaker is open, `until` is the time from which a probe may start. If it is
    half-open, `until` is the time from which the running probe counts as lost.
    """

    TABLE: ClassVar[str] = "breakers"
    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    held_until: datetime | None
    """The end of the pause that the provider asked for."""

    def at(self, now: datetime) -> BreakerRow:
        """Return its row at *now*."""
        row = {each.name: getattr(self, each.name) for each in fields(BreakerRow)}
        held = self.held_until
        if self.state == "half_open":
            row["state"] = "half-open"
        elif self.state == "closed" and held is not None and now < held:
            row["state"] = "held"
        if held is not None and held > (self.until or now):
            row["until"] = held
        return BreakerRow(**row)


def list_breakers(db: Connection, now: datetime) -> list[BreakerRow]:
    """Return all breakers of the log at *now*, closed ones last."""
    found = select(db, Breaker, "ORDER BY state = 'closed', since_us DESC, stream")
    return [each.at(now) for each in found]
