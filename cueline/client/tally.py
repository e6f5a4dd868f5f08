"""What a session has used and what went wrong in it, counted from its facts."""

from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal

from cueline.events.fact import Fact
from cueline.events.inbox import ChildEnded
from cueline.events.message import CacheMiss, Cost, Usage, cache_miss
from cueline.events.session import (
    CallsAdded,
    MessageReceived,
    ModelFailed,
    ModelReplied,
    PromptPrefixChanged,
    ReservationClosed,
    SessionForked,
    SessionTakenOver,
    ToolFailed,
    ToolInDoubt,
)

_NO_SUMS = frozenset(
    {"partial", "began_at", "updated_at", "inherited", "miss", "last_reply", "prefix_changed"}
)


@dataclass
class Tally:
    """The sums of one session; those that a fork inherited are apart."""

    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: Decimal = Decimal(0)
    estimated: Decimal = Decimal(0)
    """The part of it that nobody knows: the most that calls of unknown use may have cost."""
    assumed: Decimal = Decimal(0)
    """The part of it whose prices are assumed."""
    saved: Decimal = Decimal(0)
    """What the tokens read from the cache would have cost more without it."""
    cache_breaks: int = 0
    """Replies after a change of the prompt's beginning."""
    missed_tokens: int = 0
    """Tokens that these replies did not read from the cache: see `CacheMiss`."""
    missed_cost: Decimal = Decimal(0)
    """What these tokens cost more; it is part of the cost."""
    miss: CacheMiss | None = None
    """Of the last reply."""
    children: int = 0
    """Sessions that this one asked for, and that have ended."""
    children_cost: Decimal = Decimal(0)
    unpriced: int = 0
    """Model calls whose price nobody knows."""
    retries: int = 0
    degraded_calls: int = 0
    """Calls of tools that are not critical, and that failed."""
    partial: bool = False
    """What the agent said last goes without them."""
    takeovers: int = 0
    lost_attempts: int = 0
    in_doubt: int = 0
    """Calls that were ever in doubt."""
    began_at: datetime | None = None
    updated_at: datetime | None = None
    last_reply: ModelReplied | None = None
    prefix_changed: bool = False
    """The prompt of the next reply begins differently from that of the last."""
    inherited: "Tally | None" = None
    """What the past that a fork shares has used; none of it was spent here."""

    def after(self, fact: Fact, recorded_at: datetime) -> "Tally":
        """Count one fact, and return the tally that goes on: a fork begins a new one."""
        tally = Tally(inherited=self._whole()) if isinstance(fact, SessionForked) else self
        tally.began_at = tally.began_at or recorded_at
        tally.updated_at = recorded_at
        tally.count(fact)
        tally.tool_calls += len(fact.calls) if isinstance(fact, CallsAdded) else 0
        tally.degraded_calls += getattr(fact, "degraded", False)
        tally.partial = getattr(fact, "partial", tally.partial)
        return tally

    def _whole(self) -> "Tally":
        """Return these sums with those that a fork inherited: what a fork of it inherits."""
        past = self.inherited
        if past is None:
            return self
        names = [each.name for each in fields(self) if each.name not in _NO_SUMS]
        return Tally(**{name: getattr(self, name) + getattr(past, name) for name in names})

    def count(self, fact: Fact) -> None:
        """Add what *fact* says."""
        match fact:
            case ModelReplied():
                self._replied(fact)
            case ModelFailed():
                self._failed(fact)
            case ToolFailed():
                self.retries += fact.retry_at is not None
                self.lost_attempts += fact.kind == "lost"
            case ToolInDoubt():
                self.in_doubt += 1
            case PromptPrefixChanged():
                self.prefix_changed = True
            case ReservationClosed(outcome="estimated", usd=usd):
                self.cost += usd
                self.estimated += usd
            case MessageReceived(message=ChildEnded(usd=usd)):
                self.children += 1
                self.children_cost += usd
            case SessionTakenOver():
                self.takeovers += 1
                self.lost_attempts += len(fact.lost_attempts)
                for attempt in fact.lost_attempts:
                    self._spend(None, attempt.cost)
            case _:
                pass

    def _replied(self, replied: ModelReplied) -> None:
        self.turns += replied.cut is None
        self.tool_calls += len(replied.calls)
        self._spend(replied.usage, replied.cost)
        self._read_cache(replied)

    def _read_cache(self, replied: ModelReplied) -> None:
        """Count what the cache saved, and what a changed beginning of the prompt cost."""
        if replied.cost is not None:
            self.saved += replied.cost.saved
        self.miss, last = None, self.last_reply
        if self.prefix_changed and last is not None:
            saved = Decimal(0) if last.cost is None else last.cost.saved
            self.miss = cache_miss(last.usage.cache_read, saved, replied.usage)
            self.cache_breaks += 1
            self.missed_tokens += self.miss.tokens
            self.missed_cost += self.miss.usd
        self.last_reply, self.prefix_changed = replied, False

    def _failed(self, failed: ModelFailed) -> None:
        self.retries += failed.retry_at is not None
        self.lost_attempts += failed.kind == "lost"
        self._spend(failed.usage, failed.cost)

    def _spend(self, usage: Usage | None, cost: Cost | None) -> None:
        if usage is not None:
            self.usage += usage
            self.unpriced += cost is None
        if cost is None:
            return
        self.cost += cost.usd
        self.estimated += cost.usd if cost.estimated else 0
        if cost.prices.startswith("assumed"):
            self.assumed += cost.usd
