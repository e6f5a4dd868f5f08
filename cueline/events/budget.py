"""The facts of one budget: stream `budget-<tenant>/<root>`, one for a tree of sessions.

Amounts are tokens and US dollars. A call is named by its session, its effect
and its attempt, and is reserved, then settled or released, once.
"""

from decimal import Decimal
from typing import Literal

from cueline.events.agent import Part
from cueline.events.fact import Fact

LimitName = Literal["max_tokens", "max_cost"]


class Allowance(Part):
    """What one session on the way to the root may use, with all its descendants."""

    session: str
    max_tokens: int | None = None
    max_cost: Decimal | None = None


class BudgetOpened(Fact):
    """A session joined the budget of its tree."""

    type: Literal["BudgetOpened"] = "BudgetOpened"
    session: str
    parent: str | None = None
    """The nearest ancestor in this budget; None for the topmost."""
    max_tokens: int | None = None
    max_cost: Decimal | None = None


class CostReserved(Fact):
    """A model call may cost as much as this; no other call can have it."""

    type: Literal["CostReserved"] = "CostReserved"
    session: str
    effect: str
    attempt: int
    epoch: int
    """Of the session's owner."""
    tokens: int
    usd: Decimal


class CostSettled(Fact):
    """What a call cost; the rest of its reservation is free again."""

    type: Literal["CostSettled"] = "CostSettled"
    session: str
    effect: str
    attempt: int
    epoch: int
    tokens: int
    usd: Decimal
    estimated: bool = False
    """Nobody knows what it cost: it counts as what was reserved for it."""
    tokens_over: int = 0
    """By how much it passed its reservation."""
    usd_over: Decimal = Decimal(0)


class CostReleased(Fact):
    """A call was never started; it never will be, and costs nothing."""

    type: Literal["CostReleased"] = "CostReleased"
    session: str
    effect: str
    attempt: int
    epoch: int


class BudgetRefused(Fact):
    """There was no room for a call."""

    type: Literal["BudgetRefused"] = "BudgetRefused"
    session: str
    effect: str
    attempt: int
    epoch: int
    answer: Literal["busy", "exhausted"]
    """Busy: others' reservations hold the room. Exhausted: what was spent leaves none."""
    limit: LimitName
    whose: str
    """The session on the way to the root whose limit it is."""
    tokens: int
    """What was asked for."""
    usd: Decimal


class BudgetOffered(Fact):
    """There may be room for calls that were refused; their sessions were told."""

    type: Literal["BudgetOffered"] = "BudgetOffered"
    sessions: tuple[str, ...]
    """The one that has waited longest first."""


class BudgetWarned(Fact):
    """Four fifths of a limit are spent; said once for each limit."""

    type: Literal["BudgetWarned"] = "BudgetWarned"
    session: str
    """Whose limit it is."""
    limit: LimitName
    spent: Decimal
    of: Decimal


class BudgetRaised(Fact):
    """A person raised a limit."""

    type: Literal["BudgetRaised"] = "BudgetRaised"
    session: str
    max_tokens: int | None = None
    """None: as before."""
    max_cost: Decimal | None = None
    message: str
    """The inbox message that asked for it, as `inbox-default/7f3a@5`."""


BudgetEvent = (
    BudgetOpened
    | CostReserved
    | CostSettled
    | CostReleased
    | BudgetRefused
    | BudgetOffered
    | BudgetWarned
    | BudgetRaised
)
