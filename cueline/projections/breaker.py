"""The read model `breakers`: which models, accounts and tools are left alone, and until when."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from sqlite_utils import Database

from cueline.events.store import from_us
from cueline.projections.row import Names, select


@dataclass(frozen=True, slots=True)
class Breaker:
    """One dependency, and how it stands."""

    TABLE: ClassVar[str] = "breakers"
    KEY: ClassVar[Names] = ("stream",)
    INDEXES: ClassVar[tuple[Names, ...]] = ()

    stream: str
    id: str
    """What a user sees: `anthropic.3f9a01c2.claude-opus-4-6`."""
    state: str = "closed"
    """`closed`, `open` or `half_open`; whether it is held, `held_until_us` says."""
    since_us: int = 0
    """When it came to that state, or its first failure was counted."""
    until_us: int | None = None
    """Of one that is open: when a probe may go out; half-open: when the probe counts as lost."""
    held_until_us: int | None = None
    """The provider asked to be left alone until then."""
    kind: str = ""
    """Of the last failure."""
    failures: int = 0
    """Counted since it was closed last."""
    openings: int = 0
    """How often it opened in a row."""
    probe: str = ""
    """The effect that is the probe."""

    @property
    def since(self) -> datetime:
        """When it came to its state."""
        return from_us(self.since_us)

    @property
    def held_until(self) -> datetime | None:
        """Until when its account is to be left alone."""
        return None if self.held_until_us is None else from_us(self.held_until_us)

    def shown_state(self, now: datetime) -> Literal["closed", "open", "half-open", "held"]:
        """Return what lists show at *now*."""
        if self.state == "closed":
            return "held" if self.held_until is not None and now < self.held_until else "closed"
        return "open" if self.state == "open" else "half-open"

    def until(self, now: datetime) -> datetime | None:
        """Return until when nothing goes out, as far as is known at *now*."""
        if self.shown_state(now) == "held":
            return self.held_until
        return None if self.until_us is None else from_us(self.until_us)


def list_breakers(db: Database) -> list[Breaker]:
    """Return all breakers of the log, those that are not closed first."""
    return select(db, Breaker, "ORDER BY state = 'closed', since_us DESC, stream")
