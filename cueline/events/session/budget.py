"""What a session may use, what its calls cost, and its children."""

from decimal import Decimal
from typing import ClassVar, Literal

from cueline.events.fact import Fact


class ReservationClosed(Fact):
    """The ledger has closed what it held for a model call."""

    type: Literal["ReservationClosed"] = "ReservationClosed"
    effect: str
    attempt: int
    outcome: Literal["settled", "estimated", "released"]
    """Settled at what was reported, or at all that was reserved; or never started."""
    tokens: int = 0
    usd: Decimal = Decimal(0)
    shares: dict[str, float] = {}
    """Of each limit on the way to the root, the share that is spent: the fullest of each name."""


class LimitRaised(Fact):
    """Limits of the session are higher from here on; what is None is as before."""

    type: Literal["LimitRaised"] = "LimitRaised"
    max_tokens: int | None = None
    max_cost: Decimal | None = None
    max_turns: int | None = None
    max_active_seconds: float | None = None
    max_wall_seconds: float | None = None


class LimitWarned(Fact):
    """A limit is nearly used up; said once for each limit and share of it."""

    type: Literal["LimitWarned"] = "LimitWarned"
    FACETS: ClassVar[tuple[str, ...]] = ("limit",)
    limit: str
    """Its name in `Limits`."""
    share: float
    """0.8: people are told; 0.9: the agent is told, too."""
    used: float
    of: float
    """Of tokens and money 1: `used` is the share of the fullest limit on the way to the root."""
    note: str = ""
    """What the next model call is told."""


class ChildSpawned(Fact):
    """The session has a child."""

    type: Literal["ChildSpawned"] = "ChildSpawned"
    child: str
    """Its stream."""


class ChildSettled(Fact):
    """A child of the session has ended, and this is what it spent."""

    type: Literal["ChildSettled"] = "ChildSettled"
    child: str
    status: Literal["completed", "failed", "stopped"]
    tokens: int = 0
    usd: Decimal = Decimal(0)
