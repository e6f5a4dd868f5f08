"""The limits and costs of a session in words, and the summary at its end."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from cueline.console.text import Line, Tone, count, duration, money, tokens_in
from cueline.events.agent import Limits
from cueline.events.message import Cost
from cueline.events.session import LimitRaised
from cueline.projections.summary import Summary

_TONES: dict[str, Tone] = {"completed": "good", "idle": "good", "failed": "bad", "stopped": "bad"}

_UNCOUNTED = "its tokens and cost are counted with --all"


def summary(id: str, status: str, tally: Summary) -> Iterator[Line]:  # noqa: A002 - the word of the log
    """Return lines with status, turns, calls, tokens, cost, and the problems of the session."""
    usage = tally.usage
    pieces = [
        f"session {id}: {status}{', partial' * tally.partial}",
        count(tally.turns, "turn"),
        count(tally.tool_calls, "tool call"),
        f"{tokens_in(usage)} + {usage.output:,} out tokens",
        cost_of(tally),
    ]
    if tally.began_at and tally.updated_at:
        pieces.append(duration((tally.updated_at - tally.began_at).total_seconds()))
    yield Line(_TONES.get(status, "note"), " · ".join(pieces))
    if told := cache_text(tally.saved, tally.cache_breaks, tally.missed_tokens, tally.missed_cost):
        yield Line("dim", f"  cache: {told}")
    if troubles := _troubles(tally):
        # Not "recovered": the last retry may have failed, too.
        yield Line("dim", f"  along the way: {troubles}")
    if tally.degraded_calls:
        failed = count(tally.degraded_calls, "call")
        yield Line("dim", f"  partial: {failed} of tools that are not critical failed")
    if tally.inherited is not None:
        past = tally.inherited
        yield Line("dim", f"  inherited: {count(past.turns, 'turn')}, {money(past.cost)}")


def summary_without_sums(id: str, status: str, turn: str) -> Line:  # noqa: A002 - the word of the log
    """Return a line with the status and the turn of a session whose usage is unknown."""
    return Line(_TONES.get(status, "note"), f"session {id}: {status} · turn {turn} · {_UNCOUNTED}")


def cache_text(saved: Decimal, breaks: int, missed: int, cost: Decimal) -> str:
    """Return the amount that the cache saved, and the cost of changed prompts; empty for none."""
    pieces = [f"saved {money(saved)}"] if saved else []
    if breaks:
        usd = f", {money(cost)} more" if cost else ""
        anew = f"{missed:,} cached tokens were sent anew{usd}"
        pieces.append(f"{count(breaks, 'change')} of the prompt's beginning: {anew}")
    return "; ".join(pieces)


def cost_of(tally: Summary) -> str:
    """Return the cost of a session, marked if it is an estimate."""
    pieces = [money(tally.cost, estimated=tally.estimated > 0)]
    if tally.estimated:
        pieces.append(f"{money(tally.estimated)} of it estimated")
    if tally.assumed:
        pieces.append(f"{money(tally.assumed)} of it at assumed prices")
    if tally.unpriced:
        pieces.append(f"and {count(tally.unpriced, 'unpriced model call')}")
    if tally.children:
        whole = money(tally.cost + tally.children_cost)
        children = f"{tally.children} child{'ren' if tally.children > 1 else ''}"
        pieces.append(f"{whole} with {children}")
    said, *more = pieces
    return f"{said} ({', '.join(more)})" if more else said


def _troubles(tally: Summary) -> str:
    found = [
        (tally.takeovers, "takeover"),
        (tally.lost_attempts, "lost attempt"),
        (tally.retries, "retry"),
        (tally.in_doubt, "call in doubt"),
    ]
    words = {"retry": "retries", "call in doubt": "calls in doubt"}
    return ", ".join(
        f"{number} {words.get(noun, noun + 's') if number > 1 else noun}"
        for number, noun in found
        if number
    )


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
