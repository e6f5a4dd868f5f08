"""The facts of the budget of one tree of sessions: stream `budget-<tenant>/<root>`.

Amounts are tokens and US dollars. A call is named by session, effect and attempt;
it is reserved once, then settled or released once.

The tree's stream has one event for each session below the root, so its version is their
number.
"""

from decimal import Decimal
from typing import Literal

from cueline.events.fact import Fact, Part

LimitName = Literal["max_tokens", "max_cost"]


class Allowance(Part):
    """The limits of one session on the path to the root, with all its descendants."""

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
    """The ledger reserved the highest cost of a model call."""

    type: Literal["CostReserved"] = "CostReserved"
    session: str
    effect: str
    attempt: int
    epoch: int
    """The epoch of the session's owner."""
    tokens: int
    usd: Decimal


class CostSettled(Fact):
    """The ledger recorded the cost of a call, and freed the rest of the call's reservation."""

    type: Literal["CostSettled"] = "CostSettled"
    session: str
    effect: str
    attempt: int
    epoch: int
    tokens: int
    usd: Decimal
    estimated: bool = False
    """Whether the cost is unknown, so that the whole reservation counts."""
    tokens_over: int = 0
    """The amount by which the cost exceeds the reservation."""
    usd_over: Decimal = Decimal(0)


class CostReleased(Fact):
    """The ledger released the reservation of a call that will never start."""

    type: Literal["CostReleased"] = "CostReleased"
    session: str
    effect: str
    attempt: int
    epoch: int


class BudgetRefused(Fact):
    """The ledger refused a reservation, because the call does not fit the budget."""

    type: Literal["BudgetRefused"] = "BudgetRefused"
    session: str
    effect: str
    attempt: int
    epoch: int
    answer: Literal["busy", "exhausted"]
    """Busy: other reservations leave no room. Exhausted: spent amounts leave none."""
    limit: LimitName
    whose: str
    """The session on the path to the root that has the limit."""
    tokens: int
    """The requested amount."""
    usd: Decimal


class BudgetOffered(Fact):
    """Refused calls may fit now; the same append notifies the sessions of these calls."""

    type: Literal["BudgetOffered"] = "BudgetOffered"
    sessions: tuple[str, ...]
    """The notified sessions, longest wait first."""


class BudgetWarned(Fact):
    """Four fifths of a limit are spent; recorded once for each limit."""

    type: Literal["BudgetWarned"] = "BudgetWarned"
    session: str
    """The session with the limit."""
    limit: LimitName
    spent: Decimal
    of: Decimal


class BudgetRaised(Fact):
    """A person raised a limit."""

    type: Literal["BudgetRaised"] = "BudgetRaised"
    session: str
    max_tokens: int | None = None
    """The new limit of tokens; None: unchanged."""
    max_cost: Decimal | None = None
    message: str
    """The inbox message of the request, as `inbox-default/7f3a@5`."""


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


class DescendantAsked(Fact):
    """A session below the root was started, in the same append."""

    type: Literal["DescendantAsked"] = "DescendantAsked"
    session: str
    """The session's stream."""
    parent: str
    """The parent session."""
