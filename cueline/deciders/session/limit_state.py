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
    """Whether the call started; the reservation of an unstarted call is released."""
    usage: Usage | None = None
    """The usage; None if it is unknown: then the whole reservation counts as spent."""
    cost: Cost | None = None


class BudgetAccount(Struct, frozen=True):
    """The calls that the ledger has to settle or release for the session."""

    bills: tuple[Bill, ...] = ()


class Used(Struct, frozen=True):
    """The usage of the session itself, without descendants; a fork begins at 0."""

    turns: int = 0
    """The number of the model's replies."""
    tokens: int = 0
    """The input and output tokens."""
    usd: Decimal = Decimal(0)

    def after(self, usage: Usage | None, cost: Cost | None, turns: int = 0) -> "Used":
        """Return the sums with one more model call; an unknown usage or cost is None."""
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
    """The current limits, including raised limits."""
    began_at: datetime | None = None
    seen_at: datetime | None = None
    """The latest known time; None without a limit of wall time."""
    warned: tuple[Rung, ...] = ()
    notes: tuple[str, ...] = ()
    """The digests of the warnings for the next request."""
    shares: tuple[tuple[str, float], ...] = ()
    """The largest spent shares of tokens and cost, from the ledger's last answer."""
    asked: LimitRaised | None = None
    """The requested limits that are not applied yet; None: no request."""
