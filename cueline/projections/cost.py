"""Sums of tokens and cost from the read models `usage` and `sessions`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

from sqlite_utils import Database

from cueline.projections.row import ask, matching

By = Literal["session", "agent", "model", "day", "tree"]
_NAMES: dict[By, str] = {
    "session": "usage.stream",
    "agent": "sessions.agent",
    "model": "usage.provider || '/' || usage.model",
    "day": "usage.day",
    "tree": "sessions.root",
}
_USED = """
    SELECT {name}, usage.stream, calls, usage.unpriced,
        usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
        usage.output_tokens, usage.cost, usage.assumed_cost, usage.estimated_cost
    FROM usage JOIN sessions ON sessions.stream = usage.stream {where}
"""
_TREE = """
    WITH RECURSIVE below(stream) AS (
        SELECT stream FROM sessions WHERE child_of = ?
        UNION SELECT sessions.stream FROM sessions JOIN below ON child_of = below.stream
    )
    SELECT sessions.stream, cost FROM sessions JOIN below USING (stream)
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of one session, agent, model, day or tree of sessions."""

    name: str
    sessions: int = 0
    calls: int = 0
    unpriced: int = 0
    """Model calls without a known price."""
    sent_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input read from the provider's cache."""
    output_tokens: int = 0
    cost: Decimal = Decimal(0)
    assumed_cost: Decimal = Decimal(0)
    """The part of the cost at assumed prices."""
    estimated_cost: Decimal = Decimal(0)
    """The part of the cost whose usage is unknown: the highest possible cost."""

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.name,
            self.sessions + other.sessions,
            self.calls + other.calls,
            self.unpriced + other.unpriced,
            self.sent_tokens + other.sent_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.cost + other.cost,
            self.assumed_cost + other.assumed_cost,
            self.estimated_cost + other.estimated_cost,
        )


def spent(
    db: Database,
    by: By = "session",
    *,
    stream: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[Spent]:
    """Return usage by group, highest cost first; days in order, both ends included."""
    where, values = matching(
        [
            ("usage.stream = ?", stream),
            ("day >= ?", since),
            ("day <= ?", until),
        ]
    )
    rows = ask(db, "usage", _USED.format(name=_NAMES[by], where=where), values)
    sums = _summed(rows)
    if by == "day":
        return sorted(sums, key=lambda each: each.name)
    return sorted(sums, key=lambda each: (-each.cost, -each.sent_tokens, each.name))


def total(every: Iterable[Spent]) -> Spent:
    """Return the sum; a session in several rows counts in each."""
    return sum(every, Spent("total"))


def descendants_cost(db: Database, stream: str) -> tuple[int, Decimal]:
    """Return the number of a session's descendants, and their cost."""
    costs = [Decimal(cost) for _, cost in ask(db, "sessions", _TREE, [stream])]
    return len(costs), sum(costs, Decimal(0))


def _summed(rows: Iterable[tuple[Any, ...]]) -> list[Spent]:
    """Add the rows of each name; only outside of SQL are sums of decimals exact."""
    sums: dict[str, list[Any]] = {}
    streams: dict[str, set[str]] = {}
    for name, stream, calls, unpriced, plain, read, write, output, *money in rows:
        usd, assumed, estimated = map(Decimal, money)
        used = (calls, unpriced, plain + read + write, read, output, usd, assumed, estimated)
        before = sums.setdefault(name, [0] * len(used))
        sums[name] = [one + other for one, other in zip(before, used, strict=True)]
        streams.setdefault(name, set()).add(stream)
    told = (Spent(name, len(streams[name]), *used) for name, used in sums.items())
    return [each for each in told if each != replace(Spent(each.name), sessions=each.sessions)]
