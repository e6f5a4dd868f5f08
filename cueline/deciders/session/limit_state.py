"""What the rules remember of limits: what may be used, what was said of it, what is not paid."""

from datetime import datetime

from msgspec import Struct

from cueline.events.agent import Limits
from cueline.events.inbox import ChildAsked, ChildEnded
from cueline.events.message import Cost, Usage
from cueline.events.session import LimitRaised


class Bill(Struct, frozen=True):
    """A model call that is over, and that the ledger has to close."""

    effect: str
    attempt: int
    started: bool = True
    """False: it never was, and what is held for it is released."""
    usage: Usage | None = None
    """None: nobody knows; all that was reserved counts as spent."""
    cost: Cost | None = None


class BudgetAccount(Struct, frozen=True):
    """What is open between the session and its budget, and news of its children."""

    bills: tuple[Bill, ...] = ()
    news: tuple[ChildAsked | ChildEnded, ...] = ()
    """Messages that are told in facts of their own, which follow at once."""


_LIMITS = Limits()

Rung = tuple[str, float, float]
"""A limit, the share of it that was told, and what the share was counted from."""


class LimitState(Struct, frozen=True):
    """What the session may use, and what was said of it; what changes seldom."""

    limits: Limits = _LIMITS
    """As they are now: they can be raised."""
    began_at: datetime | None = None
    seen_at: datetime | None = None
    """The latest moment that is known, where the time since the start is limited."""
    warned: tuple[Rung, ...] = ()
    notes: tuple[str, ...] = ()
    """Fingerprints of what the model is told next."""
    shares: tuple[tuple[str, float], ...] = ()
    """Of tokens and money, what the ledger said last: the share of the fullest limit."""
    asked: LimitRaised | None = None
    """What somebody wants to be higher, and is not yet."""
