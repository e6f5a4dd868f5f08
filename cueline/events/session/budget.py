"""Facts about a session's limits and the cost of its calls."""

from decimal import Decimal
from typing import ClassVar, Literal

from cueline.events.fact import Fact


class ReservationClosed(Fact):
    """The ledger has settled or released the reservation of a model call."""

    type: Literal["ReservationClosed"] = "ReservationClosed"
    effect: str
    attempt: int
    outcome: Literal["settled", "estimated", "released"]
    """Settled at the reported cost, or at the whole reservation; or released."""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    shares: dict[str, float] = {}
    """For each limit, the largest spent share on the path to the root."""


class LimitRaised(Fact):
    """Limits of the session are raised from here on; None keeps a limit."""

    type: Literal["LimitRaised"] = "LimitRaised"
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_turns: int | None = None
    max_active_seconds: float | None = None
    max_wall_seconds: float | None = None


class LimitWarned(Fact):
    """A limit is nearly used up; recorded once for each limit and share."""

    type: Literal["LimitWarned"] = "LimitWarned"
    FACETS: ClassVar[tuple[str, ...]] = ("limit",)
    limit: str
    """Its name in `Limits`."""
    share: float
    """0.8: people are warned; 0.9: the agent, too."""
    used: float
    of: float
    """For tokens and cost 1: `used` is the largest spent share on the path to the root."""
    note: str = ""
    """The text for the next model call."""
