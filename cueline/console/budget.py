"""The used share of a session's budget, in a word."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cueline.console.text import duration, money
from cueline.events.agent import Limits
from cueline.events.message import Cost
from cueline.events.session import LimitRaised
from cueline.projections.summary import Summary

NAMES = {
    "max_turns": "turns",
    "max_active_seconds": "time of work",
    "max_wall_seconds": "time since the start",
    "max_tokens": "tokens",
    "max_cost": "cost",
}


def amount(limit: str, value: float | Decimal) -> str:
    """Return a value of *limit*, in its unit."""
    if limit == "max_cost":
        return money(Decimal(str(value)))
    if limit.endswith("_seconds"):
        return duration(float(value))
    return f"{int(value):,}"


def price(cost: Cost | None) -> str:
    """Return the cost of a model call, marked if it is an estimate."""
    if cost is None:
        return "price unknown"
    assumed = " (assumed price)" if cost.prices.startswith("assumed") else ""
    return f"{money(cost.usd, estimated=cost.estimated)}{assumed}"


def possible_cost(cost: Cost | None) -> str:
    """Return the possible cost of a lost call, in brackets; empty for 0."""
    return f" ({price(cost)})" if cost is not None and cost.usd else ""


class Budget:
    """The limits of cost and tokens of a session, and the used amounts."""

    def __init__(self) -> None:
        self.limits: Limits | None = None
        self._shares: Mapping[str, float] = {}
        """The spent shares in the ledger's last answer, which include the rest of the tree."""

    def start(self, limits: Limits) -> None:
        """Begin with *limits*."""
        self.limits, self._shares = limits, {}

    def settle(self, shares: Mapping[str, float]) -> None:
        """Apply the ledger's shares."""
        self._shares = shares

    def rise(self, event: LimitRaised) -> str:
        """Apply raised limits, and return them as text."""
        higher: dict[str, Any] = event.model_dump(exclude={"type"}, exclude_none=True)
        if self.limits is not None:
            self.limits = self.limits.model_copy(update=higher)
        self._shares = {name: share for name, share in self._shares.items() if name not in higher}
        return ", ".join(f"{NAMES[name]} {amount(name, to)}" for name, to in higher.items())

    def share(self, tally: Summary) -> float | None:
        """Return the used share of the nearest limit; None without a limit."""
        shares = [*self._shares.values()]
        if self.limits is not None and self.limits.max_tokens is not None:
            shares.append(tally.usage.total / self.limits.max_tokens)
        if self.limits is not None and self.limits.max_cost is not None:
            shares.append(float((tally.cost + tally.children_cost) / self.limits.max_cost))
        return max(shares, default=None)
