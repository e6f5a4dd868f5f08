"""Sums of tokens and cost from the read models `usage` and `sessions`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Literal

from cueline.projections.read_model import ask, matching

if TYPE_CHECKING:  # a list of sessions needs no messages
    from cueline.events.message import CacheMiss

By = Literal["session", "agent", "model", "day", "tree"]
_NAMES: dict[By, str] = {
    "session": "usage.stream",
    "agent": "sessions.agent",
    "model": "usage.provider || '/' || usage.model",
    "day": "usage.day",
    "tree": "sessions.root",
}
# A session whose calls failed can have used nothing.
_USED = """
    SELECT {name}, usage.stream, calls, usage.unpriced,
        usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens,
        usage.output_tokens, usage.cost, usage.assumed_cost, usage.estimated_cost,
        usage.saved_cost
    FROM usage JOIN sessions ON sessions.stream = usage.stream
    WHERE calls + usage.unpriced + usage.input_tokens + usage.cache_read_tokens
        + usage.cache_write_tokens + usage.output_tokens + CAST(usage.cost AS REAL) > 0 {where}
"""
_BROKEN: dict[By, str] = {
    "session": "events.stream",
    "agent": "sessions.agent",
    "model": "after.model",
    "day": "date(events.recorded_us / 1000000, 'unixepoch')",
    "tree": "sessions.root",
}
# Several changes before one reply are one miss.
_BREAKS = """
    SELECT DISTINCT {name}, after.stream, after.version, before.cache_read_tokens,
        before.saved_cost, after.input_tokens, after.cache_read_tokens, after.cache_write_tokens
    FROM events
    JOIN sessions ON sessions.stream = events.stream
    JOIN bookings AS before ON before.stream = events.stream AND before.version = (
        SELECT max(version) FROM bookings
        WHERE stream = events.stream AND version < events.version AND turns = 1)
    JOIN bookings AS after ON after.stream = events.stream AND after.version = (
        SELECT min(version) FROM bookings
        WHERE stream = events.stream AND version > events.version AND turns = 1)
    WHERE events.type = 'PromptPrefixChanged' {where}
"""
_TREE = """
    WITH RECURSIVE below(stream) AS (
        SELECT stream FROM sessions WHERE child_of = ?
        UNION SELECT sessions.stream FROM sessions JOIN below ON child_of = below.stream
    )
    SELECT sessions.stream, child_of, agent, status, cost
    FROM sessions JOIN below USING (stream) ORDER BY created_us, sessions.stream
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
    written_tokens: int = 0
    """The part of the input written to the provider's cache."""
    saved_cost: Decimal = Decimal(0)
    """The amount that the cache saved for the tokens read from it."""
    cache_breaks: int = 0
    """Replies after a change of the prompt's beginning."""
    missed_tokens: int = 0
    """Tokens that these replies did not read from the cache: see `CacheMiss`."""
    missed_cost: Decimal = Decimal(0)
    """The additional cost of these tokens, which is part of the cost."""

    def __add__(self, other: "Spent") -> "Spent":
        added = (getattr(self, name) + getattr(other, name) for name in _ADDED)
        return Spent(self.name, *added)


_ADDED = [field.name for field in fields(Spent) if field.name != "name"]


def spent(
    db: Connection,
    by: By = "session",
    *,
    stream: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> list[Spent]:
    """Return usage by group, highest cost first; days in order, both ends included."""
    return spent_with_total(db, by, stream=stream, since=since, until=until)[0]


def spent_with_total(
    db: Connection, by: By, *, stream: str | None, since: str | None, until: str | None
) -> tuple[list[Spent], Spent]:
    """Return usage as `spent`, and the total of its rows, in which each session counts once."""
    where, values = matching(
        [("usage.stream = ?", stream), ("day >= ?", since), ("day <= ?", until)]
    )
    sql = _USED.format(name=_NAMES[by], where=where.replace("WHERE", "AND", 1))
    rows = ask(db, "usage", sql, values)
    sums = _with_breaks(_summed(rows), _breaks(db, by, stream, since, until))
    whole = replace(total(sums), sessions=len({row[1] for row in rows}))
    if by == "day":
        return sorted(sums, key=lambda each: each.name), whole
    return sorted(sums, key=lambda each: (-each.cost, -each.sent_tokens, each.name)), whole


def _breaks(
    db: Connection, by: By, stream: str | None, since: str | None, until: str | None
) -> dict[str, list["CacheMiss"]]:
    """Return the costs of changed prompts, by name."""
    from cueline.events.message import Usage, cache_miss  # noqa: PLC0415 - as above

    day = _BROKEN["day"]
    where, values = matching(
        [("events.stream = ?", stream), (f"{day} >= ?", since), (f"{day} <= ?", until)]
    )
    sql = _BREAKS.format(name=_BROKEN[by], where=where.replace("WHERE", "AND", 1))
    found: dict[str, list[CacheMiss]] = {}
    for name, _, _, reads, saved, plain, read, write in ask(db, "events", sql, values):
        after = Usage(input=plain, cache_read=read, cache_write=write)
        found.setdefault(name, []).append(cache_miss(reads, Decimal(saved), after))
    return found


def _with_breaks(rows: Iterable[Spent], missed: Mapping[str, Sequence["CacheMiss"]]) -> list[Spent]:
    return [
        replace(
            row,
            cache_breaks=len(misses),
            missed_tokens=sum(miss.tokens for miss in misses),
            missed_cost=sum((miss.usd for miss in misses), Decimal(0)),
        )
        if (misses := missed.get(row.name))
        else row
        for row in rows
    ]


def total(every: Iterable[Spent]) -> Spent:
    """Return the sum; a session in several rows counts in each."""
    return sum(every, Spent("total"))


@dataclass(frozen=True, slots=True)
class Descendant:
    """A descendant of a session."""

    stream: str
    depth: int
    """Its depth below that session, from 1."""
    agent: str
    status: str
    cost: Decimal
    """Its own, in US dollars."""


def descendants(db: Connection, stream: str) -> list[Descendant]:
    """Return the descendants of *stream*, depth first."""
    below: dict[str, list[tuple[str, str, str, str]]] = {}
    for name, parent, *rest in ask(db, "sessions", _TREE, [stream]):
        below.setdefault(parent, []).append((name, *rest))
    found: list[Descendant] = []
    left = [(each, 1) for each in reversed(below.pop(stream, ()))]
    while left:
        (name, agent, status, cost), depth = left.pop()
        found.append(Descendant(name, depth, agent, status, Decimal(cost)))
        left += [(each, depth + 1) for each in reversed(below.pop(name, ()))]
    return found


def _summed(rows: Iterable[tuple[Any, ...]]) -> list[Spent]:
    """Add the rows of each name; only outside of SQL are sums of decimals exact."""
    groups: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        groups.setdefault(row[0], []).append(row[1:])
    return [_sum(name, *zip(*group, strict=True)) for name, group in groups.items()]


def _sum(name: str, streams: Iterable[str], *columns: Iterable[Any]) -> Spent:
    """Return the sum of the *columns* of `_USED` after the stream."""
    calls, unpriced, plain, read, write, output = map(sum, columns[:6])
    usd, assumed, estimated, saved = (sum(map(Decimal, each), Decimal(0)) for each in columns[6:])
    counts = (len(set(streams)), calls, unpriced, plain + read + write, read, output)
    return Spent(name, *counts, usd, assumed, estimated, write, saved)
