"""The read model `breakers`: the circuit breakers of models, accounts and tools."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from sqlite_utils import Database

from cueline.events.store import from_us
from cueline.projections.row import Names, select


@dataclass(frozen=True, slots=True)
class Breaker:
    """The circuit breaker of one dependency."""

    TABLE: ClassVar[str] = "breakers"
    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    id: str
    """The name for users: `PROVIDER.3f9a01c2.MODEL` or `tool.3f9a01c2.fetch_page`."""
    state: str = "closed"
    """`closed`, `open` or `half_open`; `held_until_us` tells whether it is held."""
    since_us: int = 0
    """When the state began, or the first failure was counted."""
    until_us: int | None = None
    """Open: when a probe may start. Half-open: when the probe counts as lost."""
    held_until_us: int | None = None
    """The end of the pause that the provider asked for."""
    kind: str = ""
    """The last failure."""
    failures: int = 0
    """Failures counted since it was last closed."""
    openings: int = 0
    """Consecutive openings."""
    probe: str = ""
    """The effect that is the probe."""

    @property
    def since(self) -> datetime:
        """When its state began."""
        return from_us(self.since_us)

    @property
    def held_until(self) -> datetime | None:
        """Until when it is held."""
        return None if self.held_until_us is None else from_us(self.held_until_us)

    def shown_state(self, now: datetime) -> Literal["closed", "open", "half-open", "held"]:
        """Return the state for lists at *now*."""
        if self.state == "closed":
            return "held" if self.held_until is not None and now < self.held_until else "closed"
        return "open" if self.state == "open" else "half-open"

    def until(self, now: datetime) -> datetime | None:
        """Return until when calls are blocked, as known at *now*."""
        opens = None if self.until_us is None else from_us(self.until_us)
        held = self.held_until
        return opens if held is None or held <= (opens or now) else held


def list_breakers(db: Database) -> list[Breaker]:
    """Return all breakers of the log, closed ones last."""
    return select(db, Breaker, "ORDER BY state = 'closed', since_us DESC, stream")
