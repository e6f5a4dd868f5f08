"""The state of a session's limits: current limits, warnings and open bills."""

from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from cueline.events.agent import Limits
from cueline.events.message import Cost, Usage
from cueline.events.session import LimitRaised


class Bill(Struct, frozen=True):
    """A finished model call that the ledger has to close."""

    effect: str
    attempt: int
    started: bool = True
    """False: it never started, and its reservation is released."""
    usage: Usage | None = None
    """None: unknown; the whole reservation counts as spent."""
    cost: Cost | None = None


class BudgetAccount(Struct, frozen=True):
    """Open reservations and bills."""

    bills: tuple[Bill, ...] = ()


class Used(Struct, frozen=True):
    """What the session has used itself; a fork begins at nothing."""

    turns: int = 0
    """Answers of the model."""
    tokens: int = 0
    """Sent and answered."""
    usd: Decimal = Decimal(0)

    def after(self, usage: Usage | None, cost: Cost | None, turns: int = 0) -> "Used":
        """Return the sums with one more model call; None is what nobody knows."""
        return Used(
            self.turns + turns,
            self.tokens + (usage.total if usage else 0),
            self.usd + cost.usd if cost else self.usd,
        )


_LIMITS = Limits()

Rung = tuple[str, float, float]
"""A limit, the warned share, and the start of its period."""


class LimitState(Struct, frozen=True):
    """The session's limits and warnings; they change seldom."""

    limits: Limits = _LIMITS
    """The current limits, as raised."""
    began_at: datetime | None = None
    seen_at: datetime | None = None
    """The latest known time, if wall time is limited."""
    warned: tuple[Rung, ...] = ()
    notes: tuple[str, ...] = ()
    """Digests of the warnings for the next request."""
    shares: tuple[tuple[str, float], ...] = ()
    """For tokens and cost: the largest spent share, as the ledger said last."""
    asked: LimitRaised | None = None
    """Requested limits that are not applied yet."""
