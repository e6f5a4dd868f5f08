"""Folds the usage, the problems and the three clocks (C24) of a session from its facts.

The active time is the sum of the durations of its calls, which the rules fold and limit, too.
The waiting time is the time at rest, for any reason; each wait has a deadline of its own. The
wall time is the time since the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import get_args

from cueline.events.fact import Fact
from cueline.events.inbox import ChildEnded
from cueline.events.message import CacheMiss, Cost, Usage, cache_miss
from cueline.events.session import (
    ApprovalResolved,
    CallsAdded,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    ModelRequested,
    PromptPrefixChanged,
    ReservationClosed,
    SessionCompleted,
    SessionContinued,
    SessionFailed,
    SessionForked,
    SessionIdle,
    SessionStarted,
    SessionStopped,
    SessionTakenOver,
    SessionWaiting,
    ToolFailed,
    ToolInDoubt,
    ToolReturned,
    ToolStarted,
)

_TIMED = ModelReplied | ModelFailed | ToolReturned | ToolFailed
_RESTS = SessionWaiting | SessionIdle
_CONTINUES = ModelRequested | SessionContinued | SessionTakenOver
_ENDS = SessionCompleted | SessionFailed | SessionStopped
_ACTIVITY: Mapping[type, str] = {
    SessionStarted: "starting",
    SessionForked: "starting",
    SessionWaiting: "waiting",
    SessionIdle: "idle",
    **dict.fromkeys(get_args(_ENDS), "over"),
    **dict.fromkeys((*get_args(_CONTINUES), ToolStarted, ApprovalResolved), "working"),
}


@dataclass(slots=True)
class Used:
    """The usage in one or several facts."""

    turns: int = 0
    tool_calls: int = 0
    calls: int = 0
    """The number of model calls with a reply."""
    failed: int = 0
    """The number of failed attempts of model calls."""
    usage: Usage = field(default_factory=Usage)
    cost: Decimal = Decimal(0)
    estimated: Decimal = Decimal(0)
    """The part of the cost whose usage is unknown: the highest possible cost."""
    assumed: Decimal = Decimal(0)
    """The part of the cost at assumed prices."""
    saved: Decimal = Decimal(0)
    """The amount that the cache saved for the tokens read from it."""
    unpriced: int = 0
    """Model calls without a known price."""
    takeovers: int = 0
    lost_attempts: int = 0

    def add(self, other: "Used") -> None:
        """Add the values of *other*."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def columns(self) -> dict[str, int | Decimal]:
        """Return the values other than 0, by the names of columns."""
        found: dict[str, int | Decimal] = {
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "calls": self.calls,
            "failed": self.failed,
            "input_tokens": self.usage.input,
            "output_tokens": self.usage.output,
            "cache_read_tokens": self.usage.cache_read,
            "cache_write_tokens": self.usage.cache_write,
            "cost": self.cost,
            "estimated_cost": self.estimated,
            "assumed_cost": self.assumed,
            "saved_cost": self.saved,
            "unpriced": self.unpriced,
            "takeovers": self.takeovers,
            "lost_attempts": self.lost_attempts,
        }
        return {name: each for name, each in found.items() if each}


_SUMS = tuple(each.name for each in fields(Used))


def spent(usage: Usage | None, cost: Cost | None) -> Used:
    """Return the known usage of one model call."""
    used = Used()
    if usage is not None:
        used.usage, used.unpriced = usage, int(cost is None)
    if cost is not None:
        used.cost, used.saved = cost.usd, cost.saved
        used.estimated = cost.usd if cost.estimated else Decimal(0)
        used.assumed = cost.usd if cost.prices.startswith("assumed") else Decimal(0)
    return used


def used_by(fact: object) -> Used | None:
    """Return the usage in *fact*; None for most facts."""
    used = None
    match fact:
        case ModelReplied():
            used = spent(fact.usage, fact.cost)
            used.calls, used.turns, used.tool_calls = 1, int(fact.cut is None), len(fact.calls)
        case CallsAdded(calls=calls):
            used = Used(tool_calls=len(calls))
        case ModelFailed():
            used = spent(fact.usage, fact.cost)
            used.failed, used.lost_attempts = 1, int(fact.kind == "lost")
        case ToolFailed(kind="lost"):
            used = Used(lost_attempts=1)
        case ReservationClosed(outcome="estimated", usd=usd):
            used = Used(cost=usd, estimated=usd)
        case SessionTakenOver(lost_attempts=lost):
            used = Used(takeovers=1, lost_attempts=len(lost))
            for attempt in lost:
                used.add(spent(None, attempt.cost))
        case _:
            pass
    return used


@dataclass(slots=True)
class Summary(Used):
    """The sums and clocks of one session; the inherited ones of a fork are separate."""

    cache_breaks: int = 0
    """Replies after a change of the prompt's beginning."""
    missed_tokens: int = 0
    """Tokens that these replies did not read from the cache: see `CacheMiss`."""
    missed_cost: Decimal = Decimal(0)
    """The additional cost of these tokens, which is part of the cost."""
    children: int = 0
    """The number of ended children."""
    children_cost: Decimal = Decimal(0)
    retries: int = 0
    degraded_calls: int = 0
    """The failed calls of tools that are not critical."""
    in_doubt: int = 0
    """The number of calls that were ever in doubt."""
    partial: bool = False
    """Whether the last reply or result is partial."""
    miss: CacheMiss | None = None
    """The cache miss of the last reply."""
    last_reply: ModelReplied | None = None
    prefix_changed: bool = False
    """Whether the prompt of the next reply begins differently from the last one."""
    began_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    rests_since: datetime | None = None
    waited: timedelta = timedelta()
    active_seconds: float = 0.0
    activity: str = ""
    """`starting`, `working`, `waiting`, `idle` or `over`; empty: not known yet."""
    active_since: datetime | None = None
    """The time from which it has this activity."""
    wait: SessionWaiting | None = None
    """The wait, while it waits."""
    answer: SessionCompleted | SessionIdle | None = None
    """The last result."""
    failure: SessionFailed | SessionStopped | None = None
    """The end without a result."""
    inherited: "Summary | None" = None
    """The usage of a fork's shared past, which is not the fork's own."""

    def after(self, fact: Fact, recorded_at: datetime) -> "Summary":
        """Count one fact, and return the current summary: a fork begins a new one."""
        summary = Summary(inherited=self._whole()) if isinstance(fact, SessionForked) else self
        summary.began_at = summary.began_at or recorded_at
        summary.updated_at = recorded_at
        if (used := used_by(fact)) is not None:
            summary.add(used)
        summary.count(fact)
        summary.pass_time(fact, recorded_at)
        summary.degraded_calls += getattr(fact, "degraded", False)
        summary.partial = getattr(fact, "partial", summary.partial)
        return summary

    def waiting(self, now: datetime) -> float:
        """Return the seconds at rest by *now*."""
        return (self.waited + self._resting(now)).total_seconds()

    def wall(self, now: datetime) -> float:
        """Return the seconds from the start to the end, or to *now*."""
        if self.began_at is None:
            return 0.0
        return ((self.ended_at or now) - self.began_at).total_seconds()

    def _whole(self) -> "Summary":
        """Return these sums with the inherited ones, for a fork of this session."""
        past = self.inherited
        if past is None:
            return self
        return Summary(**{name: getattr(self, name) + getattr(past, name) for name in _INHERITED})

    def count(self, fact: Fact) -> None:
        """Count the values that are no sums of a table."""
        match fact:
            case ModelFailed() | ToolFailed():
                self.retries += fact.retry_at is not None
            case ModelReplied():
                self._read_cache(fact)
            case ToolInDoubt():
                self.in_doubt += 1
            case PromptPrefixChanged():
                self.prefix_changed = True
            case SessionCompleted() | SessionIdle():
                self.answer = fact
            case SessionFailed() | SessionStopped():
                self.failure = fact
            case MessageReceived(message=ChildEnded(usd=usd)):
                self.children += 1
                self.children_cost += usd
            case _:
                pass

    def _read_cache(self, replied: ModelReplied) -> None:
        """Count the cost of a changed beginning of the prompt."""
        self.miss, last = None, self.last_reply
        if self.prefix_changed and last is not None:
            saved = Decimal(0) if last.cost is None else last.cost.saved
            self.miss = cache_miss(last.usage.cache_read, saved, replied.usage)
            self.cache_breaks += 1
            self.missed_tokens += self.miss.tokens
            self.missed_cost += self.miss.usd
        self.last_reply, self.prefix_changed = replied, False

    def pass_time(self, fact: Fact, recorded_at: datetime) -> None:
        """Set the clocks to the time of a fact."""
        if isinstance(fact, _TIMED):
            self.active_seconds += fact.seconds
        if isinstance(fact, _RESTS):
            self.rests_since = self.rests_since or recorded_at
        elif isinstance(fact, _CONTINUES | _ENDS):
            self.waited += self._resting(recorded_at)
            self.rests_since = None
        if (activity := _ACTIVITY.get(type(fact))) is not None:
            self.activity, self.active_since = activity, recorded_at
            self.wait = fact if isinstance(fact, SessionWaiting) else None
        if isinstance(fact, _ENDS):
            self.ended_at = self.ended_at or recorded_at

    def _resting(self, until: datetime) -> timedelta:
        return timedelta() if self.rests_since is None else until - self.rests_since


_NAMES = tuple(each.name for each in fields(Summary))
_INHERITED = _NAMES[: _NAMES.index("partial")]
